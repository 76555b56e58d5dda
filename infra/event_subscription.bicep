// Which events of a subscription come to the queue. Event Grid filters at the source: 25 filters at most, with 25
// values in all, and a key of two levels below data (learn.microsoft.com/azure/event-grid/event-filtering).
@description('The system topic.')
param topicName string

@description('The name of the event subscription.')
param name string

@description('The resource id of the queue.')
param queueId string

@description('The client ids of the identities of the apps.')
param appIds string[]

// A cluster with its pools, and what is around one. The portal and `az tag` write tags through an API of their own.
var operations = [
  'Microsoft.ContainerService/managedClusters/'
  'Microsoft.Resources/tags/'
  'Microsoft.Resources/subscriptions/resourceGroups/write'
  'Microsoft.Resources/subscriptions/resourceGroups/delete'
  'Microsoft.Authorization/roleAssignments/'
  'Microsoft.Authorization/policyAssignments/'
  'Microsoft.Authorization/locks/'
  'Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/'
]
// Actions that change nothing: whoever lists credentials or runs a command in a cluster changes no resource.
var reads = ['/list', '/runCommand/', '/accessProfiles/']
var own = [{ operatorType: 'StringNotIn', key: 'data.claims.appid', values: appIds }]

resource topic 'Microsoft.EventGrid/systemTopics@2025-02-15' existing = {
  name: topicName
}

resource events 'Microsoft.EventGrid/systemTopics/eventSubscriptions@2025-02-15' = {
  parent: topic
  name: name
  properties: {
    deliveryWithResourceIdentity: {
      identity: { type: 'SystemAssigned' }
      destination: {
        endpointType: 'ServiceBusQueue'
        properties: { resourceId: queueId }
      }
    }
    eventDeliverySchema: 'EventGridSchema'
    filter: {
      includedEventTypes: [
        'Microsoft.Resources.ResourceWriteSuccess'
        'Microsoft.Resources.ResourceDeleteSuccess'
        'Microsoft.Resources.ResourceActionSuccess'
      ]
      enableAdvancedFilteringOnArrays: false
      advancedFilters: concat(
        [
          { operatorType: 'StringBeginsWith', key: 'data.operationName', values: operations }
          { operatorType: 'StringNotContains', key: 'data.operationName', values: reads }
        ],
        empty(appIds) ? [] : own
      )
    }
    // What is not delivered for a day is lost: the next sweep finds what it was about.
    retryPolicy: {
      maxDeliveryAttempts: 30
      eventTimeToLiveInMinutes: 1440
    }
  }
}
