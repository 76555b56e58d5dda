// The right of a system topic to send to the queue of Azure's events, and to nothing else.
@description('The namespace of the queue.')
param namespaceName string

@description('The queue.')
param queueName string

@description('The identity of the system topic.')
param principalId string

var dataSender = '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39'

resource namespace 'Microsoft.ServiceBus/namespaces@2026-01-01' existing = {
  name: namespaceName

  resource queue 'queues' existing = {
    name: queueName
  }
}

resource sender 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: namespace::queue
  name: guid(namespace::queue.id, principalId, dataSender)
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', dataSender)
  }
}
