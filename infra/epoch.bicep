// Who may read and write the tags of the app's resource group, one of which has the epoch of its tables.
// A right on tags is none on the group, and none on what is in it.
import { principals } from 'types.bicep'

@description('The identities of the apps.')
param identities principals

resource epochWriter 'Microsoft.Authorization/roleDefinitions@2022-04-01' = {
  name: guid(resourceGroup().id, 'roadstead-epoch-writer')
  properties: {
    roleName: 'Roadstead epoch writer (${uniqueString(resourceGroup().id)})'
    description: 'Read and write the tags of a resource group.'
    type: 'CustomRole'
    assignableScopes: [resourceGroup().id]
    permissions: [
      {
        actions: [
          'Microsoft.Resources/tags/read'
          'Microsoft.Resources/tags/write'
        ]
      }
    ]
  }
}

resource epochReader 'Microsoft.Authorization/roleDefinitions@2022-04-01' = {
  name: guid(resourceGroup().id, 'roadstead-epoch-reader')
  properties: {
    roleName: 'Roadstead epoch reader (${uniqueString(resourceGroup().id)})'
    description: 'Read the tags of a resource group.'
    type: 'CustomRole'
    assignableScopes: [resourceGroup().id]
    permissions: [
      {
        actions: ['Microsoft.Resources/tags/read']
      }
    ]
  }
}

resource controlEpoch 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(resourceGroup().id, identities.control, epochWriter.id)
  properties: {
    principalId: identities.control
    principalType: 'ServicePrincipal'
    roleDefinitionId: epochWriter.id
  }
}

resource workerEpoch 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(resourceGroup().id, identities.worker, epochReader.id)
  properties: {
    principalId: identities.worker
    principalType: 'ServicePrincipal'
    roleDefinitionId: epochReader.id
  }
}

resource deleterEpoch 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(resourceGroup().id, identities.deleter, epochReader.id)
  properties: {
    principalId: identities.deleter
    principalType: 'ServicePrincipal'
    roleDefinitionId: epochReader.id
  }
}
