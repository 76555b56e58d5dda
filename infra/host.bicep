// The storage account of one app's host, without keys: its locks, its function keys and its deployed code. No
// other app may write there: whoever writes the deployed code of an app acts as its identity. The host needs no
// queues here, so the app has no role for them.
import { redundancy, texts } from 'types.bicep'

@description('The name of the account.')
@maxLength(24)
param name string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags texts

@description('How often the account has what is written.')
param sku redundancy

@description('Whether the account is reached through its private endpoints only.')
param isPrivate bool

@description('Whether the account keeps versions and deleted blobs for a month.')
param keepVersions bool

@description('The identity of the app.')
param principalId string

var deploymentContainerName = 'releases'
var storageBlobDataOwner = 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'

resource account 'Microsoft.Storage/storageAccounts@2026-06-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: { name: sku }
  properties: {
    accessTier: 'Hot'
    allowBlobPublicAccess: false
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    publicNetworkAccess: isPrivate ? 'Disabled' : 'Enabled'
    networkAcls: {
      bypass: 'AzureServices'
      defaultAction: isPrivate ? 'Deny' : 'Allow'
    }
    supportsHttpsTrafficOnly: true
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2026-06-01' = {
  parent: account
  name: 'default'
  properties: keepVersions
    ? {
        isVersioningEnabled: true
        deleteRetentionPolicy: { enabled: true, days: 30 }
        containerDeleteRetentionPolicy: { enabled: true, days: 30 }
      }
    : {}
}

resource releases 'Microsoft.Storage/storageAccounts/blobServices/containers@2026-06-01' = {
  parent: blobs
  name: deploymentContainerName
}

resource blobOwner 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  scope: account
  name: guid(account.id, principalId, storageBlobDataOwner)
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', storageBlobDataOwner)
  }
}

output name string = account.name
output deploymentContainer string = '${account.properties.primaryEndpoints.blob}${deploymentContainerName}'
