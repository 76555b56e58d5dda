// The secrets. Only those that are given are written; main.bicep refers to them by the same names. Each app reads
// the secrets that it uses, and no others.
@description('The name of the vault.')
@maxLength(24)
param name string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags object

@description('The identity of the app that has the webhook, the API, the planner and the timers.')
param controlPrincipalId string

@description('The identity of the app that creates and changes clusters.')
param workerPrincipalId string

@description('The identity of the app that deletes clusters.')
param deleterPrincipalId string

@description('The GitHub token, or empty.')
@secure()
param githubToken string

@description('The private key of the GitHub App, or empty.')
@secure()
param githubAppPrivateKey string

@description('The secret of the webhook.')
@secure()
param githubWebhookSecret string

@description('The secret of the webhook before the current one, or empty.')
@secure()
param githubWebhookSecretPrevious string

@description('The password of Flux for the fleet repository, or empty.')
@secure()
param fluxGitPassword string

@description('The key for scripts with the role Reader, or empty.')
@secure()
param apiKeyReader string

@description('The key for scripts with the role Operator, or empty.')
@secure()
param apiKeyOperator string

@description('The key for scripts with the role Approver, or empty.')
@secure()
param apiKeyApprover string

@description('The key for scripts with the role Admin, or empty.')
@secure()
param apiKeyAdmin string

@description('The addresses of notifications and their secrets, by the names of docs/notifications.md.')
@secure()
param notificationAddresses object

@description('The keys of the external systems that approve stages of rollouts, by name.')
@secure()
param approvalKeys object

var keyVaultSecretsUser = '4633458b-17de-408a-b874-0445c86b69e6'
var everyApp = [controlPrincipalId, workerPrincipalId, deleterPrincipalId]

resource vault 'Microsoft.KeyVault/vaults@2023-07-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    tenantId: tenant().tenantId
    sku: {
      family: 'A'
      name: 'standard'
    }
    enableRbacAuthorization: true
    enableSoftDelete: true
    enablePurgeProtection: true
  }
}

resource token 'Microsoft.KeyVault/vaults/secrets@2023-07-01' = if (!empty(githubToken)) {
  parent: vault
  name: 'github-token'
  properties: { value: githubToken }
}

resource appKey 'Microsoft.KeyVault/vaults/secrets@2023-07-01' = if (!empty(githubAppPrivateKey)) {
  parent: vault
  name: 'github-app-private-key'
  properties: { value: githubAppPrivateKey }
}

resource webhook 'Microsoft.KeyVault/vaults/secrets@2023-07-01' = {
  parent: vault
  name: 'github-webhook-secret'
  properties: { value: githubWebhookSecret }
}

resource webhookBefore 'Microsoft.KeyVault/vaults/secrets@2023-07-01' = if (!empty(githubWebhookSecretPrevious)) {
  parent: vault
  name: 'github-webhook-secret-previous'
  properties: { value: githubWebhookSecretPrevious }
}

resource flux 'Microsoft.KeyVault/vaults/secrets@2023-07-01' = if (!empty(fluxGitPassword)) {
  parent: vault
  name: 'flux-git-password'
  properties: { value: fluxGitPassword }
}

resource keyReader 'Microsoft.KeyVault/vaults/secrets@2023-07-01' = if (!empty(apiKeyReader)) {
  parent: vault
  name: 'api-key-reader'
  properties: { value: apiKeyReader }
}

resource keyOperator 'Microsoft.KeyVault/vaults/secrets@2023-07-01' = if (!empty(apiKeyOperator)) {
  parent: vault
  name: 'api-key-operator'
  properties: { value: apiKeyOperator }
}

resource keyApprover 'Microsoft.KeyVault/vaults/secrets@2023-07-01' = if (!empty(apiKeyApprover)) {
  parent: vault
  name: 'api-key-approver'
  properties: { value: apiKeyApprover }
}

resource keyAdmin 'Microsoft.KeyVault/vaults/secrets@2023-07-01' = if (!empty(apiKeyAdmin)) {
  parent: vault
  name: 'api-key-admin'
  properties: { value: apiKeyAdmin }
}

resource addresses 'Microsoft.KeyVault/vaults/secrets@2023-07-01' = [
  for address in items(notificationAddresses): {
    parent: vault
    name: 'notify-${toLower(replace(address.key, '_', '-'))}'
    properties: { value: address.value }
  }
]

resource addressReaders 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (address, number) in items(notificationAddresses): {
    scope: addresses[number]
    name: guid(addresses[number].id, controlPrincipalId, keyVaultSecretsUser)
    properties: {
      principalId: controlPrincipalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', keyVaultSecretsUser)
    }
  }
]

resource approvals 'Microsoft.KeyVault/vaults/secrets@2023-07-01' = [
  for key in items(approvalKeys): {
    parent: vault
    name: 'approval-${toLower(replace(key.key, '_', '-'))}'
    properties: { value: key.value }
  }
]

resource approvalReaders 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (key, number) in items(approvalKeys): {
    scope: approvals[number]
    name: guid(approvals[number].id, controlPrincipalId, keyVaultSecretsUser)
    properties: {
      principalId: controlPrincipalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', keyVaultSecretsUser)
    }
  }
]

resource tokenReaders 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for principalId in everyApp: if (!empty(githubToken)) {
    scope: token
    name: guid(token.id, principalId, keyVaultSecretsUser)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', keyVaultSecretsUser)
    }
  }
]

resource appKeyReaders 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for principalId in everyApp: if (!empty(githubAppPrivateKey)) {
    scope: appKey
    name: guid(appKey.id, principalId, keyVaultSecretsUser)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', keyVaultSecretsUser)
    }
  }
]

resource webhookReaders 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for principalId in [controlPrincipalId]: {
    scope: webhook
    name: guid(webhook.id, principalId, keyVaultSecretsUser)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', keyVaultSecretsUser)
    }
  }
]

resource webhookBeforeReaders 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for principalId in [controlPrincipalId]: if (!empty(githubWebhookSecretPrevious)) {
    scope: webhookBefore
    name: guid(webhookBefore.id, principalId, keyVaultSecretsUser)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', keyVaultSecretsUser)
    }
  }
]

resource fluxReaders 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for principalId in [workerPrincipalId]: if (!empty(fluxGitPassword)) {
    scope: flux
    name: guid(flux.id, principalId, keyVaultSecretsUser)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', keyVaultSecretsUser)
    }
  }
]

resource keyReaderReaders 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for principalId in [controlPrincipalId]: if (!empty(apiKeyReader)) {
    scope: keyReader
    name: guid(keyReader.id, principalId, keyVaultSecretsUser)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', keyVaultSecretsUser)
    }
  }
]

resource keyOperatorReaders 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for principalId in [controlPrincipalId]: if (!empty(apiKeyOperator)) {
    scope: keyOperator
    name: guid(keyOperator.id, principalId, keyVaultSecretsUser)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', keyVaultSecretsUser)
    }
  }
]

resource keyApproverReaders 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for principalId in [controlPrincipalId]: if (!empty(apiKeyApprover)) {
    scope: keyApprover
    name: guid(keyApprover.id, principalId, keyVaultSecretsUser)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', keyVaultSecretsUser)
    }
  }
]

resource keyAdminReaders 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for principalId in [controlPrincipalId]: if (!empty(apiKeyAdmin)) {
    scope: keyAdmin
    name: guid(keyAdmin.id, principalId, keyVaultSecretsUser)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', keyVaultSecretsUser)
    }
  }
]

output name string = vault.name
