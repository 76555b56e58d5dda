// The system topic of the subscription of this resource group. Two fleets share it.
@description('The name of the topic.')
param name string

resource topic 'Microsoft.EventGrid/systemTopics@2025-02-15' = {
  name: name
  location: 'global'
  identity: { type: 'SystemAssigned' }
  properties: {
    source: subscription().id
    topicType: 'Microsoft.Resources.Subscriptions'
  }
}

output principalId string = topic.identity.principalId
