// The namespace with the queues that the engine runs on. Each app receives from queues of its own: nobody but
// the deleter receives what asks for a delete.
import { principals, texts } from 'types.bicep'

@description('The name of the namespace.')
param name string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags texts

@description('Whether the namespace is reached through its private endpoint only, which needs the Premium tier. Event Grid passes as a trusted service.')
param isPrivate bool

@description('The workspace that gets what is done to the namespace and its queues.')
param workspaceId string

@description('The identities of the apps.')
param identities principals

resource namespace 'Microsoft.ServiceBus/namespaces@2026-01-01' = {
  name: name
  location: location
  tags: tags
  sku: isPrivate
    ? {
        name: 'Premium'
        tier: 'Premium'
        capacity: 1
      }
    : {
        name: 'Standard'
        tier: 'Standard'
      }
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
    publicNetworkAccess: isPrivate ? 'Disabled' : 'Enabled'
  }
}

// Without a rule, a namespace that is not Disabled takes everybody:
// learn.microsoft.com/azure/service-bus-messaging/private-link-service.
resource passing 'Microsoft.ServiceBus/namespaces/networkRuleSets@2026-01-01' = if (isPrivate) {
  parent: namespace
  name: 'default'
  properties: {
    publicNetworkAccess: 'Disabled'
    defaultAction: 'Deny'
    trustedServiceAccessEnabled: true
  }
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  scope: namespace
  name: 'roadstead'
  properties: {
    workspaceId: workspaceId
    logs: [{ category: 'OperationalLogs', enabled: true }]
  }
}

module plans 'queue.bicep' = {
  params: {
    namespaceName: namespace.name
    name: 'plans'
    receiverPrincipalId: identities.control
    senderPrincipalIds: [identities.worker, identities.deleter]
  }
}

module previews 'queue.bicep' = {
  params: {
    namespaceName: namespace.name
    name: 'previews'
    receiverPrincipalId: identities.control
    senderPrincipalIds: [identities.worker]
  }
}

module jobs 'queue.bicep' = {
  params: {
    namespaceName: namespace.name
    name: 'jobs'
    receiverPrincipalId: identities.worker
    senderPrincipalIds: [identities.control, identities.deleter]
  }
}

// The jobs of small changes: they wait behind no large one.
module changes 'queue.bicep' = {
  params: {
    namespaceName: namespace.name
    name: 'changes'
    receiverPrincipalId: identities.worker
    senderPrincipalIds: [identities.control, identities.deleter]
  }
}

module deletes 'queue.bicep' = {
  params: {
    namespaceName: namespace.name
    name: 'deletes'
    receiverPrincipalId: identities.deleter
    senderPrincipalIds: [identities.control, identities.worker]
  }
}

// What Azure says of the target subscriptions: events.bicep lets their topics send.
module events 'queue.bicep' = {
  params: {
    namespaceName: namespace.name
    name: 'events'
    sessions: false
    receiverPrincipalId: identities.control
    senderPrincipalIds: []
  }
}

output fullyQualifiedNamespace string = '${namespace.name}.servicebus.windows.net'
