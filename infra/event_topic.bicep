// The system topic of the subscription of this resource group. Two fleets share it.
import { texts } from 'types.bicep'

@description('The name of the topic.')
param name string

@description('Tags of the topic.')
param tags texts

resource topic 'Microsoft.EventGrid/systemTopics@2025-02-15' = {
  name: name
  location: 'global'
  tags: tags
  identity: { type: 'SystemAssigned' }
  properties: {
    source: subscription().id
    topicType: 'Microsoft.Resources.Subscriptions'
  }
}

output principalId string = topic.identity.principalId
