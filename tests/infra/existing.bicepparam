// A group, a network and DNS zones that exist, with names and tags of a company; others give the apps their roles.
using '../../infra/main.bicep'

var networkGroup = '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/network/providers/Microsoft.Network'

param fleet = 'one'
param githubRepository = 'example/fleet'
param secrets = ['github-token', 'github-webhook-secret']
param createResourceGroup = false
param resourceGroupName = 'rg-platform-fleet'
param resourceNames = {
  app: 'app-platform-fleet'
  serviceBus: 'sbns-platform-fleet'
  vault: 'kv-platform-fleet'
  storage: 'stplatformfleet'
  workspace: 'law-platform-fleet'
  component: 'ai-platform-fleet'
}
param tags = { costCenter: '4711', owner: 'platform' }
param assignRoles = false
param targetSubscriptions = ['00000000-0000-0000-0000-000000000003']
param network = 'private'
param appsSubnetId = '${networkGroup}/virtualNetworks/hub/subnets/fleet-apps'
param endpointsSubnetId = '${networkGroup}/virtualNetworks/hub/subnets/fleet-endpoints'
param dnsZones = {
  blob: '${networkGroup}/privateDnsZones/privatelink.blob.core.windows.net'
  table: '${networkGroup}/privateDnsZones/privatelink.table.core.windows.net'
  serviceBus: '${networkGroup}/privateDnsZones/privatelink.servicebus.windows.net'
  vault: '${networkGroup}/privateDnsZones/privatelink.vaultcore.azure.net'
}
param entranceAddresses = ['192.30.252.0/22', '203.0.113.0/24']
param alertActionGroupIds = [
  '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/alerts/providers/Microsoft.Insights/actionGroups/duty'
]
