// One queue with its rights. What its properties say is part of the engine's design: sessions make the planner
// one actor per fleet and a cluster's jobs one actor, duplicate detection drops a message that is sent again, and
// a message that fails ten times goes to the dead letters, where a function of the receiving app fails its job.
// No partitions: a partitioned queue with duplicate detection takes no batch with messages of several sessions.
@description('The name of the namespace.')
param namespaceName string

@description('The name of the queue.')
param name string

@description('Whether it has sessions. Event Grid delivers to no queue that has them.')
param sessions bool = true

@description('The identity of the app that receives the messages.')
param receiverPrincipalId string

@description('The identities of the apps that only send messages.')
param senderPrincipalIds string[]

// The scale controller reads the length of the queue as the receiving app's identity, and that is a right of Data
// Owner alone. Without it, the controller peeks at the first messages of a queue. Those of waiting jobs are
// scheduled, so that it would see no work behind them, and leave an app at zero asleep.
var dataOwner = '090c5cfd-751d-490a-894a-3ce6f1109419'
var dataSender = '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39'

resource namespace 'Microsoft.ServiceBus/namespaces@2026-01-01' existing = {
  name: namespaceName
}

resource queue 'Microsoft.ServiceBus/namespaces/queues@2026-01-01' = {
  parent: namespace
  name: name
  properties: {
    requiresSession: sessions
    lockDuration: 'PT1M'
    maxDeliveryCount: 10
    requiresDuplicateDetection: true
    enablePartitioning: false
    duplicateDetectionHistoryTimeWindow: 'PT10M'
    deadLetteringOnMessageExpiration: true
    defaultMessageTimeToLive: 'P14D'
    maxSizeInMegabytes: 5120
  }
}

resource owner 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: queue
  name: guid(queue.id, receiverPrincipalId, dataOwner)
  properties: {
    principalId: receiverPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', dataOwner)
  }
}

resource senders 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for principalId in senderPrincipalIds: {
    scope: queue
    name: guid(queue.id, principalId, dataSender)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', dataSender)
    }
  }
]
