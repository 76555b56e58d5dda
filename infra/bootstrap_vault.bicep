// The worker reads the secrets of one vault of yours, whose values become Secrets of clusters. No other app does.
@description('The name of the vault, which exists and uses Azure RBAC.')
param name string

@description('The identity of the app that creates and changes clusters.')
param workerPrincipalId string

var keyVaultSecretsUser = '4633458b-17de-408a-b874-0445c86b69e6'

resource vault 'Microsoft.KeyVault/vaults@2023-07-01' existing = {
  name: name
}

resource reader 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: vault
  name: guid(vault.id, workerPrincipalId, keyVaultSecretsUser)
  properties: {
    principalId: workerPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', keyVaultSecretsUser)
  }
}
