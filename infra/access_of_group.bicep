// The roles of the apps in many subscriptions, for the owner of a management group: one deployment gives them in each.
//   az deployment mg create --management-group-id GROUP --location westeurope --template-file infra/access_of_group.bicep \
//     --parameters identities=IDENTITIES targetSubscriptions='["SUBSCRIPTION", ...]'
targetScope = 'managementGroup'

import { principals, uuid } from 'types.bicep'

@description('The identities of the apps, an output of main.bicep.')
param identities principals

@description('The subscriptions of the group in which the apps get their roles.')
@minLength(1)
param targetSubscriptions uuid[]

@description('What access.bicep takes next to the identities.')
param options {
  grantKubernetesAdmin: bool?
  readActivityLog: bool?
  readAlerts: bool?
  readCosts: bool?
  assignableRoles: uuid[]?
  federates: bool?
  createsIdentities: bool?
  assignPolicies: bool?
  manageNamespaces: bool?
} = {}

module access 'access.bicep' = [
  for target in targetSubscriptions: {
    scope: subscription(target)
    params: {
      identities: identities
      grantKubernetesAdmin: options.?grantKubernetesAdmin
      readActivityLog: options.?readActivityLog
      readAlerts: options.?readAlerts
      readCosts: options.?readCosts
      assignableRoles: options.?assignableRoles
      federates: options.?federates
      createsIdentities: options.?createsIdentities
      assignPolicies: options.?assignPolicies
      manageNamespaces: options.?manageNamespaces
    }
  }
]
