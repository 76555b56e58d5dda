// The apps write and remove the federated credentials of one identity of yours, with which pods of clusters act as it.
@description('The name of the identity, which exists.')
param name string

@description('The identity of the app that creates and changes clusters.')
param workerPrincipalId string

@description('The identity of the app that deletes clusters.')
param deleterPrincipalId string

// access.bicep creates these roles in each target subscription, under these names.
var federator = guid(subscription().id, 'roadstead-federator')
var federationRemover = guid(subscription().id, 'roadstead-federation-remover')

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' existing = {
  name: name
}

resource federatorAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: identity
  name: guid(identity.id, workerPrincipalId, federator)
  properties: {
    principalId: workerPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', federator)
  }
}

resource federationRemoverAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: identity
  name: guid(identity.id, deleterPrincipalId, federationRemover)
  properties: {
    principalId: deleterPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', federationRemover)
  }
}
