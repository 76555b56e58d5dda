// One storage account, without keys: the fleet's tables, the host's own blobs (locks, function keys) and
// the deployed code. The host needs no queues here, so the app has no role for them.
@description('The name of the account.')
@maxLength(24)
param name string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags object

@description('The identity of the function app.')
param principalId string

var deploymentContainerName = 'releases'
var storageBlobDataOwner = 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'
var storageTableDataContributor = '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3'
var tables = [
  'roadsteadclusters'
  'roadsteadevents'
  'roadsteadplans'
  'roadsteaddeliveries'
  'roadsteadfleets'
  'roadsteadblobs'
  'roadsteaddeadletters'
  'roadsteadbuckets'
]

resource account 'Microsoft.Storage/storageAccounts@2023-05-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: { name: 'Standard_LRS' }
  properties: {
    accessTier: 'Hot'
    allowBlobPublicAccess: false
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2023-05-01' = {
  parent: account
  name: 'default'
}

resource releases 'Microsoft.Storage/storageAccounts/blobServices/containers@2023-05-01' = {
  parent: blobs
  name: deploymentContainerName
}

resource tableService 'Microsoft.Storage/storageAccounts/tableServices@2023-05-01' = {
  parent: account
  name: 'default'
}

resource fleetTables 'Microsoft.Storage/storageAccounts/tableServices/tables@2023-05-01' = [
  for table in tables: {
    parent: tableService
    name: table
  }
]

resource roles 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in [storageBlobDataOwner, storageTableDataContributor]: {
    scope: account
    name: guid(account.id, principalId, role)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
    }
  }
]

output name string = account.name
output tablesEndpoint string = account.properties.primaryEndpoints.table
output deploymentContainer string = '${account.properties.primaryEndpoints.blob}${deploymentContainerName}'
