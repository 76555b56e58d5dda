// The identity of one app: for storage, queues, secrets, telemetry and the target subscriptions.
@description('The name of the identity.')
param name string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags object

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' = {
  name: name
  location: location
  tags: tags
}

output name string = identity.name
output principalId string = identity.properties.principalId
output clientId string = identity.properties.clientId
