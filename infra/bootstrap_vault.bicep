// An app reads the secrets of one vault of yours: the worker, whose values become Secrets of clusters, or the control app, which verifies with them what Flux reports.
@description('The name of the vault, which exists and uses Azure RBAC.')
param name string

@description('The identity of the app.')
param principalId string

var keyVaultSecretsUser = '4633458b-17de-408a-b874-0445c86b69e6'

resource vault 'Microsoft.KeyVault/vaults@2026-05-15' existing = {
  name: name
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
