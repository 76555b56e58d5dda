// The apps write and remove the federated credentials of one identity of yours, with which pods of clusters act as it.
import { principals } from 'types.bicep'

@description('The name of the identity, which exists.')
param name string

@description('The identities of the apps.')
param identities principals

// access.bicep creates these roles in each target subscription, under these names.
var federator = guid(subscription().id, 'roadstead-federator')
var federationRemover = guid(subscription().id, 'roadstead-federation-remover')

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' existing = {
  name: name
}

resource federatorAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: identity
  name: guid(identity.id, identities.worker, federator)
  properties: {
    principalId: identities.worker
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', federator)
  }
}

resource federationRemoverAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: identity
  name: guid(identity.id, identities.deleter, federationRemover)
  properties: {
    principalId: identities.deleter
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', federationRemover)
  }
}
