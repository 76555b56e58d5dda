// The identity of one app: for storage, queues, secrets, telemetry and the target subscriptions.
import { texts } from 'types.bicep'

@description('The name of the identity.')
param name string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags texts

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: name
  location: location
  tags: tags
}

output name string = identity.name
output principalId string = identity.properties.principalId
output clientId string = identity.properties.clientId
