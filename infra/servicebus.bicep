// The namespace with the queues that the engine runs on. Each app receives from queues of its own: nobody but
// the deleter receives what asks for a delete.
@description('The name of the namespace.')
param name string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags object

@description('The identity of the app that has the webhook, the API, the planner and the timers.')
param controlPrincipalId string

@description('The identity of the app that creates and changes clusters.')
param workerPrincipalId string

@description('The identity of the app that deletes clusters.')
param deleterPrincipalId string

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

module plans 'queue.bicep' = {
  name: 'queue-plans'
  params: {
    namespaceName: namespace.name
    name: 'plans'
    receiverPrincipalId: controlPrincipalId
    senderPrincipalIds: [workerPrincipalId, deleterPrincipalId]
  }
}

module previews 'queue.bicep' = {
  name: 'queue-previews'
  params: {
    namespaceName: namespace.name
    name: 'previews'
    receiverPrincipalId: controlPrincipalId
    senderPrincipalIds: []
  }
}

module jobs 'queue.bicep' = {
  name: 'queue-jobs'
  params: {
    namespaceName: namespace.name
    name: 'jobs'
    receiverPrincipalId: workerPrincipalId
    senderPrincipalIds: [controlPrincipalId, deleterPrincipalId]
  }
}

// The jobs of small changes: they wait behind no large one.
module changes 'queue.bicep' = {
  name: 'queue-changes'
  params: {
    namespaceName: namespace.name
    name: 'changes'
    receiverPrincipalId: workerPrincipalId
    senderPrincipalIds: [controlPrincipalId, deleterPrincipalId]
  }
}

module deletes 'queue.bicep' = {
  name: 'queue-deletes'
  params: {
    namespaceName: namespace.name
    name: 'deletes'
    receiverPrincipalId: deleterPrincipalId
    senderPrincipalIds: [controlPrincipalId, workerPrincipalId]
  }
}

// What Azure says of the target subscriptions: events.bicep lets their topics send.
module events 'queue.bicep' = {
  name: 'queue-events'
  params: {
    namespaceName: namespace.name
    name: 'events'
    sessions: false
    receiverPrincipalId: controlPrincipalId
    senderPrincipalIds: []
  }
}

output eventsQueueId string = events.outputs.id

output fullyQualifiedNamespace string = '${namespace.name}.servicebus.windows.net'
