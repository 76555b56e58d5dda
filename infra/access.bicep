// What each app may do in one target subscription: three roles, each with exactly the calls that its app makes,
// and for the worker what AKS asks of whoever writes a cluster for the resources that a manifest may name.
//
// The built-in Azure Kubernetes Service Contributor would allow far more: every action on every cluster,
// with listClusterAdminCredential and runCommand among them. It would still lack the resource groups.
//
// main.bicep deploys it, unless assignRoles is false. Then the owner of the subscription does:
//   az deployment sub create --subscription TARGET --location westeurope --template-file infra/access.bicep \
//     --parameters identities=IDENTITIES
targetScope = 'subscription'

import { principals, uuid } from 'types.bicep'

@description('The identities of the apps.')
param identities principals

@description('Also make the worker a Kubernetes administrator of clusters that take Entra identities only.')
param grantKubernetesAdmin bool = false

var kubernetesRbacClusterAdmin = 'b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b'

@description('Also let a sweep read the activity log, which says who changed a cluster by hand.')
param readActivityLog bool = false

@description('Also let checks of gates read the alerts that fire.')
param readAlerts bool = false

@description('Also let the control app read what Azure has billed for resources of the subscription.')
param readCosts bool = false

@description('The roles, by the ids of their definitions, that manifests may give to identities; with none, no app may assign a role.')
param assignableRoles uuid[] = []

@description('Also create the roles with which the apps write the federated credentials of identities.')
param federates bool = false

@description('Also create the roles with which the apps create the identities of clusters.')
param createsIdentities bool = false

@description('Also let the apps assign policies to clusters, remove them, and read what Azure Policy found.')
param assignPolicies bool = false

@description('Also let the worker write and delete the namespaces of systems that AKS manages.')
param manageNamespaces bool = false

// Whoever may assign roles could give itself every right: a condition leaves the roles of the list, and no people.
var ofRoles = 'ForAnyOfAnyValues:GuidEquals {${join(assignableRoles, ', ')}}'
var roleAttribute = 'Microsoft.Authorization/roleAssignments:RoleDefinitionId'
var mayDelete = '((!(ActionMatches{\'Microsoft.Authorization/roleAssignments/delete\'})) OR (@Resource[${roleAttribute}] ${ofRoles}))'
var toServices = '@Request[Microsoft.Authorization/roleAssignments:PrincipalType] ForAnyOfAnyValues:StringEqualsIgnoreCase {\'ServicePrincipal\'}'
var mayWrite = '((!(ActionMatches{\'Microsoft.Authorization/roleAssignments/write\'})) OR (@Request[${roleAttribute}] ${ofRoles} AND ${toServices}))'

// The API reads a cluster to import it, and what a node pool may be rolled back to; a sweep lists those of the subscription. Nothing in this app changes anything in Azure.
resource control 'Microsoft.Authorization/roleDefinitions@2022-04-01' = {
  name: guid(subscription().id, 'roadstead-control')
  properties: {
    roleName: 'Roadstead control (${subscription().subscriptionId})'
    description: 'Read AKS clusters.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: [
          'Microsoft.ContainerService/managedClusters/read'
          'Microsoft.ContainerService/managedClusters/maintenanceConfigurations/read'
          'Microsoft.ContainerService/managedClusters/agentPools/upgradeProfiles/read'
          // What regions have, beside what a pull request needs: no right to any resource but the networks.
          'Microsoft.Resources/subscriptions/locations/read'
          'Microsoft.ContainerService/locations/kubernetesVersions/read'
          'Microsoft.Compute/skus/read'
          'Microsoft.Compute/locations/usages/read'
          'Microsoft.Network/locations/usages/read'
          'Microsoft.ContainerService/locations/usages/read'
          'Microsoft.Network/virtualNetworks/read'
          // The versions of Microsoft's extension of Flux. Of the names below locations, Microsoft's page of permissions has none.
          'Microsoft.KubernetesConfiguration/*/read'
          // What the worker, and the identities of clusters, may do with what a manifest names, and what the subscription has registered.
          'Microsoft.Authorization/roleAssignments/read'
          'Microsoft.Authorization/roleDefinitions/read'
          'Microsoft.ManagedIdentity/userAssignedIdentities/read'
          'Microsoft.Resources/subscriptions/providers/read'
          'Microsoft.Features/providers/features/read'
        ]
      }
    ]
  }
}

// A node pool is deleted by a change of its cluster, so the worker may delete node pools, and nothing else.
resource worker 'Microsoft.Authorization/roleDefinitions@2022-04-01' = {
  name: guid(subscription().id, 'roadstead-worker')
  properties: {
    roleName: 'Roadstead worker (${subscription().subscriptionId})'
    description: 'Create and change AKS clusters and their resource groups.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: [
          // AKS reads what a manifest names, in the name of whoever writes the cluster.
          '*/read'
          'Microsoft.Resources/subscriptions/resourceGroups/write'
          'Microsoft.ContainerService/managedClusters/write'
          'Microsoft.ContainerService/managedClusters/start/action'
          'Microsoft.ContainerService/managedClusters/stop/action'
          'Microsoft.ContainerService/managedClusters/agentPools/write'
          'Microsoft.ContainerService/managedClusters/agentPools/delete'
          'Microsoft.ContainerService/managedClusters/agentPools/upgradeNodeImageVersion/action'
          'Microsoft.ContainerService/managedClusters/maintenanceConfigurations/write'
          'Microsoft.ContainerService/managedClusters/listClusterUserCredential/action'
          // Flux as Microsoft's extension. A configuration is deleted by a change of its cluster.
          'Microsoft.KubernetesConfiguration/extensions/write'
          'Microsoft.KubernetesConfiguration/fluxConfigurations/write'
          'Microsoft.KubernetesConfiguration/fluxConfigurations/delete'
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

resource deleter 'Microsoft.Authorization/roleDefinitions@2022-04-01' = {
  name: guid(subscription().id, 'roadstead-deleter')
  properties: {
    roleName: 'Roadstead deleter (${subscription().subscriptionId})'
    description: 'Delete AKS clusters and their resource groups.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: [
          // A list of a group's resources leaves out what its reader may not see, and the deleter deletes a group
          // only when that list is empty.
          '*/read'
          'Microsoft.Resources/subscriptions/resourceGroups/delete'
          'Microsoft.ContainerService/managedClusters/delete'
        ]
      }
    ]
  }
}

resource controlAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(subscription().id, identities.control, control.id)
  properties: {
    principalId: identities.control
    principalType: 'ServicePrincipal'
    roleDefinitionId: control.id
  }
}

resource workerAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(subscription().id, identities.worker, worker.id)
  properties: {
    principalId: identities.worker
    principalType: 'ServicePrincipal'
    roleDefinitionId: worker.id
  }
}

resource deleterAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(subscription().id, identities.deleter, deleter.id)
  properties: {
    principalId: identities.deleter
    principalType: 'ServicePrincipal'
    roleDefinitionId: deleter.id
  }
}

// Narrower than the built-in Monitoring Reader, which reads everything. An event shows who called, and from which address.
resource activityReader 'Microsoft.Authorization/roleDefinitions@2022-04-01' = if (readActivityLog) {
  name: guid(subscription().id, 'roadstead-activity')
  properties: {
    roleName: 'Roadstead activity (${subscription().subscriptionId})'
    description: 'Read the activity log.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: ['Microsoft.Insights/eventtypes/values/read']
      }
    ]
  }
}

resource activityReaderAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (readActivityLog) {
  name: guid(subscription().id, identities.control, activityReader.id)
  properties: {
    principalId: identities.control
    principalType: 'ServicePrincipal'
    roleDefinitionId: activityReader.id
  }
}

// Narrower than the built-in Monitoring Reader, which reads everything.
resource alertReader 'Microsoft.Authorization/roleDefinitions@2022-04-01' = if (readAlerts) {
  name: guid(subscription().id, 'roadstead-alerts')
  properties: {
    roleName: 'Roadstead alerts (${subscription().subscriptionId})'
    description: 'Read the alerts that fire.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: ['Microsoft.AlertsManagement/alerts/read']
      }
    ]
  }
}

resource alertReaderAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (readAlerts) {
  name: guid(subscription().id, identities.control, alertReader.id)
  properties: {
    principalId: identities.control
    principalType: 'ServicePrincipal'
    roleDefinitionId: alertReader.id
  }
}

// Narrower than the built-in Cost Management Reader, which reads budgets, exports and support tickets too.
resource costReader 'Microsoft.Authorization/roleDefinitions@2022-04-01' = if (readCosts) {
  name: guid(subscription().id, 'roadstead-costs')
  properties: {
    roleName: 'Roadstead costs (${subscription().subscriptionId})'
    description: 'Ask Cost Management what resources have cost.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: ['Microsoft.CostManagement/query/action']
      }
    ]
  }
}

resource costReaderAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (readCosts) {
  name: guid(subscription().id, identities.control, costReader.id)
  properties: {
    principalId: identities.control
    principalType: 'ServicePrincipal'
    roleDefinitionId: costReader.id
  }
}

resource administrator 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (grantKubernetesAdmin) {
  name: guid(subscription().id, identities.worker, kubernetesRbacClusterAdmin)
  properties: {
    principalId: identities.worker
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', kubernetesRbacClusterAdmin)
  }
}

// Narrower than the built-in Role Based Access Control Administrator, which may open support tickets too.
resource roleAssigner 'Microsoft.Authorization/roleDefinitions@2022-04-01' = if (!empty(assignableRoles)) {
  name: guid(subscription().id, 'roadstead-role-assigner')
  properties: {
    roleName: 'Roadstead role-assigner (${subscription().subscriptionId})'
    description: 'Assign and remove the roles that manifests name.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: [
          'Microsoft.Authorization/roleAssignments/write'
          'Microsoft.Authorization/roleAssignments/delete'
        ]
      }
    ]
  }
}

resource roleAssignerAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(assignableRoles)) {
  name: guid(subscription().id, identities.worker, roleAssigner.id)
  properties: {
    principalId: identities.worker
    principalType: 'ServicePrincipal'
    roleDefinitionId: roleAssigner.id
    condition: '${mayWrite} AND ${mayDelete}'
    conditionVersion: '2.0'
  }
}

resource roleRemover 'Microsoft.Authorization/roleDefinitions@2022-04-01' = if (!empty(assignableRoles)) {
  name: guid(subscription().id, 'roadstead-role-remover')
  properties: {
    roleName: 'Roadstead role-remover (${subscription().subscriptionId})'
    description: 'Remove the roles that manifests named, with their clusters.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: [
          'Microsoft.Authorization/roleAssignments/delete'
        ]
      }
    ]
  }
}

resource roleRemoverAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(assignableRoles)) {
  name: guid(subscription().id, identities.deleter, roleRemover.id)
  properties: {
    principalId: identities.deleter
    principalType: 'ServicePrincipal'
    roleDefinitionId: roleRemover.id
    condition: mayDelete
    conditionVersion: '2.0'
  }
}

// Narrower than the built-in Managed Identity Federated Identity Credential Contributor, which may deploy templates.
// federated_identity.bicep assigns both, at each identity that manifests may name.
resource federator 'Microsoft.Authorization/roleDefinitions@2022-04-01' = if (federates) {
  name: guid(subscription().id, 'roadstead-federator')
  properties: {
    roleName: 'Roadstead federator (${subscription().subscriptionId})'
    description: 'Write federated credentials of an identity.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: [
          'Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/write'
          'Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/delete'
        ]
      }
    ]
  }
}

resource federationRemover 'Microsoft.Authorization/roleDefinitions@2022-04-01' = if (federates) {
  name: guid(subscription().id, 'roadstead-federation-remover')
  properties: {
    roleName: 'Roadstead federation-remover (${subscription().subscriptionId})'
    description: 'Remove federated credentials of an identity.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: [
          'Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/delete'
        ]
      }
    ]
  }
}

// Whoever writes the federated credentials of an identity can act as it: identity_group.bicep assigns these roles at
// groups that hold nothing else.
resource identityManager 'Microsoft.Authorization/roleDefinitions@2022-04-01' = if (createsIdentities) {
  name: guid(subscription().id, 'roadstead-identity-manager')
  properties: {
    roleName: 'Roadstead identity-manager (${subscription().subscriptionId})'
    description: 'Create identities of clusters, and write their federated credentials.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: [
          'Microsoft.ManagedIdentity/userAssignedIdentities/write'
          'Microsoft.ManagedIdentity/userAssignedIdentities/delete'
          'Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/write'
          'Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/delete'
        ]
      }
    ]
  }
}

resource identityRemover 'Microsoft.Authorization/roleDefinitions@2022-04-01' = if (createsIdentities) {
  name: guid(subscription().id, 'roadstead-identity-remover')
  properties: {
    roleName: 'Roadstead identity-remover (${subscription().subscriptionId})'
    description: 'Remove identities of clusters, and their federated credentials.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: [
          'Microsoft.ManagedIdentity/userAssignedIdentities/delete'
          'Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials/delete'
        ]
      }
    ]
  }
}

// Whoever assigns policies can stop others from writing what these forbid: no condition of Azure narrows it to some
// definitions or clusters. Without an identity an assignment writes nothing itself.
resource policyAssigner 'Microsoft.Authorization/roleDefinitions@2022-04-01' = if (assignPolicies) {
  name: guid(subscription().id, 'roadstead-policy-assigner')
  properties: {
    roleName: 'Roadstead policy-assigner (${subscription().subscriptionId})'
    description: 'Assign the policies that manifests name, and read what Azure found.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: [
          'Microsoft.Authorization/policyAssignments/write'
          'Microsoft.Authorization/policyAssignments/delete'
          'Microsoft.PolicyInsights/policyStates/queryResults/action'
        ]
      }
    ]
  }
}

resource policyAssignerAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (assignPolicies) {
  name: guid(subscription().id, identities.worker, policyAssigner.id)
  properties: {
    principalId: identities.worker
    principalType: 'ServicePrincipal'
    roleDefinitionId: policyAssigner.id
  }
}

resource policyRemover 'Microsoft.Authorization/roleDefinitions@2022-04-01' = if (assignPolicies) {
  name: guid(subscription().id, 'roadstead-policy-remover')
  properties: {
    roleName: 'Roadstead policy-remover (${subscription().subscriptionId})'
    description: 'Remove the policies that manifests named, with their clusters.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: [
          'Microsoft.Authorization/policyAssignments/delete'
        ]
      }
    ]
  }
}

resource policyRemoverAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (assignPolicies) {
  name: guid(subscription().id, identities.deleter, policyRemover.id)
  properties: {
    principalId: identities.deleter
    principalType: 'ServicePrincipal'
    roleDefinitionId: policyRemover.id
  }
}

// Narrower than the built-in Azure Kubernetes Service Namespace Contributor, which may deploy templates. A namespace
// leaves a cluster that stays, so this is the worker's, as in the cluster itself; the deleter changes no cluster.
resource namespaceManager 'Microsoft.Authorization/roleDefinitions@2022-04-01' = if (manageNamespaces) {
  name: guid(subscription().id, 'roadstead-namespace-manager')
  properties: {
    roleName: 'Roadstead namespace-manager (${subscription().subscriptionId})'
    description: 'Write and delete the managed namespaces of systems.'
    type: 'CustomRole'
    assignableScopes: [subscription().id]
    permissions: [
      {
        actions: [
          'Microsoft.ContainerService/managedClusters/managedNamespaces/write'
          'Microsoft.ContainerService/managedClusters/managedNamespaces/delete'
        ]
      }
    ]
  }
}

resource namespaceManagerAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (manageNamespaces) {
  name: guid(subscription().id, identities.worker, namespaceManager.id)
  properties: {
    principalId: identities.worker
    principalType: 'ServicePrincipal'
    roleDefinitionId: namespaceManager.id
  }
}
