// Every option is on, and every name is as long as its parameter takes.
using '../../infra/main.bicep'

param fleet = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
param githubRepository = 'example/fleet'
param repositoryPrevious = 'example/ships'
param targetSubscriptions = ['00000000-0000-0000-0000-000000000001', '00000000-0000-0000-0000-000000000003']
param entraClientId = '00000000-0000-0000-0000-000000000002'
param alwaysReady = { http: 10, planner: 2, previewer: 2, worker: 2, changer: 2, deleter: 2 }
param zoneRedundant = true
param storageRedundancy = 'Standard_GZRS'
param maximumInstances = 1000
param grantKubernetesAdmin = true
param readActivityLog = true
param readCosts = true
param assignPolicies = true
param manageNamespaces = true
param assignableRoles = ['acdd72a7-3385-48ef-bd42-f606fba81ae7']
param federatedIdentities = [
  {
    name: 'id-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
    resourceGroup: 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
    subscriptionId: '00000000-0000-0000-0000-000000000001'
  }
]
param identityGroups = [
  {
    resourceGroup: 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
    subscriptionId: '00000000-0000-0000-0000-000000000001'
  }
]
param bootstrapVaults = [
  {
    name: 'kv-aaaaaaaaaaaaaaaaaaaaa'
    resourceGroup: 'secrets'
    subscriptionId: '00000000-0000-0000-0000-000000000001'
  }
]
param fluxEventVaults = [
  {
    name: 'kv-aaaaaaaaaaaaaaaaaaaaa'
    resourceGroup: 'secrets'
    subscriptionId: '00000000-0000-0000-0000-000000000001'
  }
]
param alertActionGroupIds = [
  '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/alerts/providers/Microsoft.Insights/actionGroups/duty'
]
param rolloutCheckHosts = ['prometheus.example.com']
param readAlerts = true
param monitorWorkspaces = [
  {
    name: 'shop'
    url: 'https://shop-abcd.westeurope.prometheus.monitor.azure.com'
    workspace: 'shop'
    resourceGroup: 'monitoring'
    subscriptionId: '00000000-0000-0000-0000-000000000001'
  }
  {
    name: 'logs'
    url: 'https://api.loganalytics.azure.com/v1/workspaces/63613592-b6f7-4c3d-a390-22ba13102111'
    workspace: 'logs'
    resourceGroup: 'monitoring'
    subscriptionId: '00000000-0000-0000-0000-000000000001'
  }
]
param moreSettings = { ANOTHER: 'value' }
param tags = { team: 'platform' }
param network = 'outbound'
param secrets = [
  'github-token'
  'github-app-id'
  'github-app-installation-id'
  'github-app-private-key'
  'github-webhook-secret'
  'github-webhook-secret-previous'
  'git-password'
  'git-ssh-key'
  'git-webhook-secret'
  'git-webhook-secret-previous'
  'flux-git-password'
  'api-key-reader'
  'api-key-operator'
  'api-key-approver'
  'api-key-admin'
  'notify-ops-slack'
  'notify-ops-slack-secret'
  'approval-changes'
]
param secretValues = {
  'github-token': readEnvironmentVariable('GITHUB_TOKEN')
  'github-app-id': readEnvironmentVariable('GITHUB_TOKEN')
  'github-app-installation-id': readEnvironmentVariable('GITHUB_TOKEN')
  'github-app-private-key': readEnvironmentVariable('GITHUB_TOKEN')
  'github-webhook-secret': readEnvironmentVariable('GITHUB_TOKEN')
  'github-webhook-secret-previous': readEnvironmentVariable('GITHUB_TOKEN')
  'git-ssh-key': readEnvironmentVariable('GITHUB_TOKEN')
  'git-password': readEnvironmentVariable('GITHUB_TOKEN')
  'flux-git-password': readEnvironmentVariable('GITHUB_TOKEN')
  'api-key-reader': readEnvironmentVariable('GITHUB_TOKEN')
  'api-key-operator': readEnvironmentVariable('GITHUB_TOKEN')
  'api-key-approver': readEnvironmentVariable('GITHUB_TOKEN')
  'api-key-admin': readEnvironmentVariable('GITHUB_TOKEN')
  'notify-ops-slack': readEnvironmentVariable('GITHUB_TOKEN')
  'notify-ops-slack-secret': readEnvironmentVariable('GITHUB_TOKEN')
  'approval-changes': readEnvironmentVariable('GITHUB_TOKEN')
}
param setUpInBrowser = true
