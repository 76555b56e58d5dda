// The fleet's tables, in the storage account of the app that plans. Every app reads and writes them.
@description('The name of the account.')
@maxLength(24)
param name string

@description('Whether a lock keeps the account from being deleted.')
param locked bool

@description('The identities of the apps.')
param principalIds string[]

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
  'roadsteadacts'
]

resource account 'Microsoft.Storage/storageAccounts@2026-06-01' existing = {
  name: name
}

resource tableService 'Microsoft.Storage/storageAccounts/tableServices@2026-06-01' = {
  parent: account
  name: 'default'
}

resource fleetTables 'Microsoft.Storage/storageAccounts/tableServices/tables@2026-06-01' = [
  for table in tables: {
    parent: tableService
    name: table
  }
]

resource blobService 'Microsoft.Storage/storageAccounts/blobServices@2026-06-01' existing = {
  parent: account
  name: 'default'
}

// The daily export of what only the tables have. The app that plans writes it: it owns the blobs of its host.
resource exports 'Microsoft.Storage/storageAccounts/blobServices/containers@2026-06-01' = {
  parent: blobService
  name: 'exports'
}

// An export is written once. What the host writes again and again has former versions, too, which end after a month.
resource versions 'Microsoft.Storage/storageAccounts/managementPolicies@2026-06-01' = {
  parent: account
  name: 'default'
  properties: {
    policy: {
      rules: [
        {
          name: 'versions'
          type: 'Lifecycle'
          definition: {
            filters: { blobTypes: ['blockBlob'] }
            actions: { version: { delete: { daysAfterCreationGreaterThan: 30 } } }
          }
        }
      ]
    }
  }
}

resource contributors 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for principalId in principalIds: {
    scope: account
    name: guid(account.id, principalId, storageTableDataContributor)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', storageTableDataContributor)
    }
  }
]

resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (locked) {
  scope: account
  name: 'roadstead'
  properties: {
    level: 'CanNotDelete'
    notes: 'The tables of a Roadstead fleet: approvals, events and what was done by whom.'
  }
}

output exportsUrl string = '${account.properties.primaryEndpoints.blob}exports'
output tablesEndpoint string = account.properties.primaryEndpoints.table
