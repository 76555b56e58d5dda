// The secrets. main.bicep names those that are given, and refers to them by the same names. Each app reads the
// secrets that it uses, and no others.
import { app, principals, texts } from 'types.bicep'

@description('The name of the vault.')
@maxLength(24)
param name string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags texts

@description('A secret, and the apps that read it.')
@sealed()
type secret = {
  name: string
  readers: app[]
}

@description('The identities of the apps.')
param identities principals

@description('The secrets: their names and readers, which are not secret.')
param secrets secret[]

@description('The values to write, by name; what has none stays as it is.')
@secure()
param values {
  *: string
}

@description('What nobody knows: the secret of webhooks, until roadstead setup writes the one of the git host.')
@secure()
param nobodyKnows string = newGuid()

@description('The identity of the app that may write the secrets of a GitHub App, so that an Admin registers one on its page. With none, no app writes a secret.')
param setterId string = ''

@description('The workspace that gets who read and wrote secrets.')
param workspaceId string

@description('Whether the vault is reached through its private endpoint only. Resource Manager writes secrets all the same.')
param isPrivate bool

@description('Whether a lock keeps the vault from being deleted.')
param locked bool

// What webhooks have, and what opens the API, is 20 characters or more: the app takes no shorter one.
func checked(name string, value string) string =>
  (isOfWebhook(name) || startsWith(name, 'api-key-')) && length(value) < 20
    ? fail('secretValues: ${name} needs 20 characters or more.')
    : value

func isOfWebhook(name string) bool => startsWith(name, 'github-webhook-') || startsWith(name, 'git-webhook-')

// What roadstead setup writes has a value before that, so that the apps can refer to it, and start. No webhook is
// signed with a text that nobody knows.
func placeholder(name string, nobodyKnows string) string =>
  isOfWebhook(name) ? nobodyKnows : (endsWith(name, '-id') ? '1' : 'none yet: run roadstead setup github')

var setUp = [
  'github-app-id'
  'github-app-installation-id'
  'github-app-private-key'
  'github-webhook-secret'
  'github-webhook-secret-previous'
]
var keyVaultSecretsUser = '4633458b-17de-408a-b874-0445c86b69e6'
var rights = flatten(map(secrets, secret => map(secret.readers, reader => { secret: secret.name, reader: reader })))

resource vault 'Microsoft.KeyVault/vaults@2026-05-15' = {
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
    softDeleteRetentionInDays: 90
    publicNetworkAccess: isPrivate ? 'Disabled' : 'Enabled'
    networkAcls: {
      bypass: 'AzureServices'
      defaultAction: isPrivate ? 'Deny' : 'Allow'
    }
    enablePurgeProtection: true
  }
}

resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (locked) {
  scope: vault
  name: 'roadstead'
  properties: {
    level: 'CanNotDelete'
    notes: 'The secrets of a Roadstead fleet. The name of a deleted vault stays taken for 90 days.'
  }
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: vault
  name: 'roadstead'
  properties: {
    workspaceId: workspaceId
    logs: [{ category: 'AuditEvent', enabled: true }]
  }
}

resource written 'Microsoft.KeyVault/vaults/secrets@2026-05-15' = [
  for secret in secrets: if (!empty(values[?secret.name] ?? '')) {
    parent: vault
    name: secret.name
    properties: {
      value: checked(secret.name, values[secret.name])
    }
  }
]

// Only while it is not there: no deployment takes back what a set-up wrote.
@onlyIfNotExists()
resource first 'Microsoft.KeyVault/vaults/secrets@2026-05-15' = [
  for secret in filter(secrets, secret => contains(setUp, secret.name) || isOfWebhook(secret.name)): if (empty(values[?secret.name] ?? '')) {
    parent: vault
    name: secret.name
    properties: {
      value: placeholder(secret.name, nobodyKnows)
    }
  }
]

// It sets these secrets, and deletes, lists or purges none. It reads them as before.
resource setter 'Microsoft.Authorization/roleDefinitions@2022-04-01' = if (!empty(setterId)) {
  name: guid(resourceGroup().id, 'roadstead-secret-setter')
  properties: {
    roleName: 'Roadstead secret setter (${uniqueString(resourceGroup().id)})'
    description: 'Write new versions of secrets.'
    type: 'CustomRole'
    assignableScopes: [resourceGroup().id]
    permissions: [
      {
        dataActions: ['Microsoft.KeyVault/vaults/secrets/setSecret/action']
      }
    ]
  }
}

var ofApp = filter(setUp, name => name != 'github-webhook-secret-previous')

resource settable 'Microsoft.KeyVault/vaults/secrets@2026-05-15' existing = [
  for name in ofApp: {
    parent: vault
    name: name
  }
]

resource setters 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (name, number) in ofApp: if (!empty(setterId) && contains(map(secrets, secret => secret.name), name)) {
    scope: settable[number]
    name: guid(settable[number].id, setterId, setter.id)
    properties: {
      principalId: setterId
      principalType: 'ServicePrincipal'
      roleDefinitionId: setter.id
    }
    dependsOn: [written, first]
  }
]

resource reader 'Microsoft.KeyVault/vaults/secrets@2026-05-15' existing = [
  for right in rights: {
    parent: vault
    name: right.secret
  }
]

resource readers 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (right, number) in rights: {
    scope: reader[number]
    name: guid(reader[number].id, identities[right.reader], keyVaultSecretsUser)
    properties: {
      principalId: identities[right.reader]
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', keyVaultSecretsUser)
    }
    dependsOn: [written, first]
  }
]
