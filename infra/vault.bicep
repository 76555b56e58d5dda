// The secrets. Only those that are given are written; main.bicep refers to them by the same names.
@description('The name of the vault.')
@maxLength(24)
param name string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags object

@description('The identity of the function app.')
param principalId string

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

var keyVaultSecretsUser = '4633458b-17de-408a-b874-0445c86b69e6'

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

resource reader 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: vault
  name: guid(vault.id, principalId, keyVaultSecretsUser)
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', keyVaultSecretsUser)
  }
}

output name string = vault.name
