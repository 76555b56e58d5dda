// The network of the apps: a new one with a fixed address for what goes out, or subnets that exist; and where endpoints
// are private, the DNS zones in which the apps find them.
//
// The apps share a subnet that is delegated to Microsoft.App/environments, and Azure may use 40 addresses of it for
// each app: learn.microsoft.com/azure/azure-functions/functions-networking-options.
import { texts, zones } from 'types.bicep'

@description('The name of a new network.')
param name string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags texts

@description('The addresses of a new network: 256 or more.')
param addresses string

@description('The subnet of the apps that exists; with none, a network is created.')
param appsSubnetId string

@description('The DNS zones to create: blob, table, serviceBus, vault, sites.')
param newZones string[]

var zoneNames = {
  blob: 'privatelink.blob.${environment().suffixes.storage}'
  table: 'privatelink.table.${environment().suffixes.storage}'
  serviceBus: 'privatelink.servicebus.windows.net'
  vault: 'privatelink.vaultcore.azure.net'
  sites: 'privatelink.azurewebsites.net'
}
var isNew = empty(appsSubnetId)

resource outgoing 'Microsoft.Network/publicIPAddresses@2025-05-01' = if (isNew) {
  name: 'ip-${name}'
  location: location
  tags: tags
  sku: { name: 'Standard' }
  properties: { publicIPAllocationMethod: 'Static' }
}

resource gateway 'Microsoft.Network/natGateways@2025-05-01' = if (isNew) {
  name: 'nat-${name}'
  location: location
  tags: tags
  sku: { name: 'Standard' }
  properties: {
    publicIpAddresses: [{ id: outgoing.id }]
  }
}

resource rules 'Microsoft.Network/networkSecurityGroups@2025-05-01' = if (isNew) {
  name: 'nsg-${name}'
  location: location
  tags: tags
}

resource network 'Microsoft.Network/virtualNetworks@2025-05-01' = if (isNew) {
  name: name
  location: location
  tags: tags
  properties: {
    addressSpace: { addressPrefixes: [addresses] }
    subnets: [
      {
        name: 'apps'
        properties: {
          addressPrefix: cidrSubnet(addresses, 25, 0)
          defaultOutboundAccess: false
          natGateway: { id: gateway.id }
          networkSecurityGroup: { id: rules.id }
          delegations: [
            {
              name: 'apps'
              properties: { serviceName: 'Microsoft.App/environments' }
            }
          ]
        }
      }
      {
        name: 'endpoints'
        properties: {
          addressPrefix: cidrSubnet(addresses, 27, 4)
          defaultOutboundAccess: false
          networkSecurityGroup: { id: rules.id }
        }
      }
    ]
  }
}

var networkId = isNew ? network.id : split(appsSubnetId, '/subnets/')[0]

resource zone 'Microsoft.Network/privateDnsZones@2024-06-01' = [
  for key in newZones: {
    name: zoneNames[key]
    location: 'global'
    tags: tags
  }
]

resource link 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2024-06-01' = [
  for (key, number) in newZones: {
    parent: zone[number]
    name: 'roadstead'
    location: 'global'
    tags: tags
    properties: {
      registrationEnabled: false
      virtualNetwork: { id: networkId }
    }
  }
]

output appsSubnetId string = isNew ? '${networkId}/subnets/apps' : appsSubnetId
output endpointsSubnetId string = '${networkId}/subnets/endpoints'
output zones zones = toObject(
  newZones,
  key => key,
  key => resourceId('Microsoft.Network/privateDnsZones', zoneNames[key])
)
output address string = isNew ? outgoing!.properties.ipAddress : ''
