// The apps create identities of clusters in a resource group of yours, write the federated credentials of all identities
// in it, and delete those that clusters had.
import { principals } from 'types.bicep'

@description('The identities of the apps.')
param identities principals

// access.bicep creates these roles in each target subscription, under these names.
var manager = guid(subscription().id, 'roadstead-identity-manager')
var remover = guid(subscription().id, 'roadstead-identity-remover')

resource managerAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(resourceGroup().id, identities.worker, manager)
  properties: {
    principalId: identities.worker
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', manager)
  }
}

resource removerAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(resourceGroup().id, identities.deleter, remover)
  properties: {
    principalId: identities.deleter
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', remover)
  }
}
