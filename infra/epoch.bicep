// Who may read and write the tags of the app's resource group, one of which has the epoch of its tables.
// A right on tags is none on the group, and none on what is in it.
@description('The identity of the app that has the planner, which advances the epoch.')
param controlPrincipalId string

@description('The identity of the app that creates and changes clusters.')
param workerPrincipalId string

@description('The identity of the app that deletes clusters.')
param deleterPrincipalId string

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
  name: guid(resourceGroup().id, controlPrincipalId, epochWriter.id)
  properties: {
    principalId: controlPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: epochWriter.id
  }
}

resource workerEpoch 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(resourceGroup().id, workerPrincipalId, epochReader.id)
  properties: {
    principalId: workerPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: epochReader.id
  }
}

resource deleterEpoch 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(resourceGroup().id, deleterPrincipalId, epochReader.id)
  properties: {
    principalId: deleterPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: epochReader.id
  }
}
