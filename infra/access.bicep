// What the app may do in one target subscription: a role with exactly the calls that it makes, and what AKS
// asks of whoever writes a cluster for the resources that a manifest may name.
//
// The built-in Azure Kubernetes Service Contributor would allow far more: every action on every cluster,
// with listClusterAdminCredential and runCommand among them. It would still lack the resource groups.
// Reading is allowed for all types, because a list of a group's resources leaves out what its reader may
// not see, and the engine deletes a group only when that list is empty.
targetScope = 'subscription'

@description('The identity of the function app.')
param principalId string

@description('Also make the app a Kubernetes administrator of clusters that take Entra identities only.')
param grantKubernetesAdmin bool = false

var kubernetesRbacClusterAdmin = 'b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b'

resource operator 'Microsoft.Authorization/roleDefinitions@2022-04-01' = {
  name: guid(subscription().id, 'roadstead-fleet-operator')
  properties: {
    roleName: 'Roadstead fleet operator (${subscription().subscriptionId})'
    description: 'Create, change and delete AKS clusters and their resource groups.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: [
          '*/read'
          'Microsoft.Resources/subscriptions/resourceGroups/write'
          'Microsoft.Resources/subscriptions/resourceGroups/delete'
          'Microsoft.ContainerService/managedClusters/write'
          'Microsoft.ContainerService/managedClusters/delete'
          'Microsoft.ContainerService/managedClusters/agentPools/write'
          'Microsoft.ContainerService/managedClusters/agentPools/delete'
          'Microsoft.ContainerService/managedClusters/agentPools/upgradeNodeImageVersion/action'
          'Microsoft.ContainerService/managedClusters/maintenanceConfigurations/write'
          'Microsoft.ContainerService/managedClusters/listClusterUserCredential/action'
          // Resources that a manifest may name: "AKS service permissions" of Microsoft's documentation.
          'Microsoft.ManagedIdentity/userAssignedIdentities/assign/action'
          'Microsoft.Network/virtualNetworks/subnets/join/action'
          'Microsoft.Network/virtualNetworks/joinLoadBalancer/action'
          'Microsoft.Network/publicIPAddresses/join/action'
          'Microsoft.Network/publicIPPrefixes/join/action'
          'Microsoft.Network/applicationGateways/write'
          'Microsoft.Compute/proximityPlacementGroups/write'
          'Microsoft.OperationalInsights/workspaces/sharedKeys/action'
          'Microsoft.OperationsManagement/solutions/write'
        ]
      }
    ]
  }
}

resource assignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(subscription().id, principalId, operator.id)
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: operator.id
  }
}

resource administrator 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (grantKubernetesAdmin) {
  name: guid(subscription().id, principalId, kubernetesRbacClusterAdmin)
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId(
      'Microsoft.Authorization/roleDefinitions',
      kubernetesRbacClusterAdmin
    )
  }
}
