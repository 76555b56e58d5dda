// What Azure says of a target subscription: a system topic, whose own identity delivers to the queue of the fleet
// when somebody writes, deletes or acts on a cluster or on what is around one. No key, and no public endpoint.
// main.bicep deploys it to each target subscription. Its owner can deploy it as well, on its own:
//   az deployment sub create --subscription TARGET --location westeurope --template-file infra/events.bicep \
//     --parameters fleet=FLEET queueId=QUEUE_ID appIds='["CLIENT_ID", ...]'
targetScope = 'subscription'

import { texts } from 'types.bicep'

@description('The name of the fleet: the event subscription has it.')
param fleet string

@description('The resource id of the queue events, an output of main.bicep.')
param queueId string

@description('The client ids of the identities of the apps, whose own writes are left out; an output of main.bicep.')
@maxLength(10)
param appIds string[]

@description('The region of the resource group; the topic is global.')
param location string = deployment().location

@description('The resource group of the topic. Azure takes one topic for a subscription: name that of an existing one.')
param topicGroup string = 'roadstead-events'

@description('The name of the topic.')
param topicName string = 'roadstead'

@description('Tags for the resource group and the topic.')
param tags texts = {}

@description('Whether to give the topic the right to send to the queue. Without it, whoever owns the queue does that.')
param assignSender bool = true

resource group 'Microsoft.Resources/resourceGroups@2025-04-01' = {
  name: topicGroup
  location: location
  tags: tags
}

module topic 'event_topic.bicep' = {
  scope: group
  params: {
    name: topicName
    tags: tags
  }
}

module sender 'event_sender.bicep' = if (assignSender) {
  scope: resourceGroup(split(queueId, '/')[2], split(queueId, '/')[4])
  params: {
    namespaceName: split(queueId, '/')[8]
    queueName: split(queueId, '/')[10]
    principalId: topic.outputs.principalId
  }
}

module subscribed 'event_subscription.bicep' = {
  scope: group
  params: {
    topicName: topicName
    // Event Grid takes 64 characters.
    name: length(fleet) > 54 ? 'roadstead-${take(fleet, 40)}-${uniqueString(fleet)}' : 'roadstead-${fleet}'
    queueId: queueId
    appIds: appIds
  }
  dependsOn: [sender]
}

@description('The identity of the topic, which needs Azure Service Bus Data Sender on the queue.')
output principalId string = topic.outputs.principalId
