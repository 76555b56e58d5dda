// A private endpoint of one resource in the subnet of endpoints. The zone has its address; without a zone, a policy
// writes it.
import { texts } from 'types.bicep'

@description('The name of the endpoint.')
@maxLength(64)
param name string

@description('The region of the subnet.')
param location string

@description('Tags for every resource.')
param tags texts

@description('The subnet of endpoints.')
param subnetId string

@description('The resource that it leads to.')
param resourceId string

@description('Which service of the resource: blob, table, namespace, vault or sites.')
param groupId string

@description('The private DNS zone; empty when a policy writes the address.')
param zoneId string

resource endpoint 'Microsoft.Network/privateEndpoints@2025-05-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    subnet: { id: subnetId }
    privateLinkServiceConnections: [
      {
        name: groupId
        properties: {
          privateLinkServiceId: resourceId
          groupIds: [groupId]
        }
      }
    ]
  }
}

resource group 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2025-05-01' = if (!empty(zoneId)) {
  parent: endpoint
  name: 'roadstead'
  properties: {
    privateDnsZoneConfigs: [
      {
        name: groupId
        properties: { privateDnsZoneId: zoneId }
      }
    ]
  }
}
