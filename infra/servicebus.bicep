// The two queues that the engine runs on. What their properties say is part of its design: sessions make
// the planner one actor per fleet and the worker one per cluster, duplicate detection drops a message that
// is sent again, and a message that fails ten times goes to the dead letters, where a function fails its job.
@description('The name of the namespace.')
param name string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags object

@description('The identity of the function app.')
param principalId string

// The scale controller reads the length of the queues as the app's identity, and that is a right of Data Owner
// alone. Without it, the controller peeks at the first messages of a queue. Those of waiting jobs are scheduled,
// so that it would see no work behind them, and leave an app at zero asleep.
var dataOwner = '090c5cfd-751d-490a-894a-3ce6f1109419'

resource namespace 'Microsoft.ServiceBus/namespaces@2024-01-01' = {
  name: name
  location: location
  tags: tags
  sku: {
    name: 'Standard'
    tier: 'Standard'
  }
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
  }
}

resource queues 'Microsoft.ServiceBus/namespaces/queues@2024-01-01' = [
  for queue in ['plans', 'jobs']: {
    parent: namespace
    name: queue
    properties: {
      requiresSession: true
      lockDuration: 'PT1M'
      maxDeliveryCount: 10
      requiresDuplicateDetection: true
      duplicateDetectionHistoryTimeWindow: 'PT10M'
      deadLetteringOnMessageExpiration: true
      defaultMessageTimeToLive: 'P14D'
      maxSizeInMegabytes: 5120
    }
  }
]

resource owner 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: namespace
  name: guid(namespace.id, principalId, dataOwner)
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', dataOwner)
  }
}

output fullyQualifiedNamespace string = '${namespace.name}.servicebus.windows.net'
