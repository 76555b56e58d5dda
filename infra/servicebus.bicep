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

var dataReceiver = '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0'
var dataSender = '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39'

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

resource roles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in [dataReceiver, dataSender]: {
    scope: namespace
    name: guid(namespace.id, principalId, role)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
    }
  }
]

output fullyQualifiedNamespace string = '${namespace.name}.servicebus.windows.net'
