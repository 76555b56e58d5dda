// Everything that one Roadstead fleet needs in Azure: one deployment at the scope of a subscription.
// The function apps live in a resource group of their own; each target subscription gets a role for each app.
targetScope = 'subscription'

@description('The name of the fleet: lower-case letters, digits and hyphens. It is in the names and tags of all resources.')
@minLength(1)
@maxLength(63)
param fleet string

@description('The region of the function apps and their data. The clusters may be anywhere.')
param location string = deployment().location

@description('The resource group to create for the function apps.')
param resourceGroupName string = 'roadstead-${fleet}'

@description('The id by which the app knows its clusters, whatever happens to its tables. An app that replaces another one takes the id of that one.')
param installationId string = guid(subscription().id, resourceGroupName, fleet)

@description('The ids of the subscriptions that hold the clusters. Whoever deploys must be allowed to assign roles there.')
param targetSubscriptions array = [subscription().subscriptionId]

@description('Also make the worker a Kubernetes administrator of clusters that take Entra identities only (no local accounts).')
param grantKubernetesAdmin bool = false

@description('Also let sweeps read the activity log of the target subscriptions, so that drift has who changed it.')
param readActivityLog bool = false

@description('The roles, by the ids of their definitions, that manifests may give to identities (spec.roleAssignments). With none, no app may assign a role.')
param assignableRoles array = []

@description('The identities that pods of clusters may act as (spec.federatedCredentials): name, resourceGroup and subscriptionId of each, which must exist, in a target subscription. With none, no app may write a federated credential.')
param federatedIdentities array = []

@description('Also let manifests assign policies of Azure Policy to clusters (spec.policies), in the target subscriptions.')
param assignPolicies bool = false

@description('Also let systems have namespaces that AKS manages (spec.managedNamespaces of a system), in the target subscriptions.')
param manageNamespaces bool = false

@description('The fleet repository, as owner/name.')
param githubRepository string

@description('What the fleet repository was called before a rename, as owner/name.')
param githubRepositoryPrevious string = ''

@description('The branch that is the desired state.')
param githubBranch string = 'main'

@description('The REST API of GitHub, or of a GitHub Enterprise Server: https://HOST/api/v3.')
param githubApiUrl string = 'https://api.github.com'

@description('A fine-grained token: contents read, commit statuses write, pull requests write. Leave empty for a GitHub App.')
@secure()
param githubToken string = ''

@description('The id of a GitHub App; empty when a token is used.')
param githubAppId string = ''

@description('The private key of the GitHub App, PEM.')
@secure()
param githubAppPrivateKey string = ''

@description('The number of the installation of the GitHub App on the fleet repository.')
param githubAppInstallationId string = ''

@description('The secret that GitHub signs webhooks with.')
@secure()
@minLength(20)
param githubWebhookSecret string

@description('The secret before the current one, while it is being changed; else empty.')
@secure()
param githubWebhookSecretPrevious string = ''

@description('The user name with which Flux in the clusters reads the fleet repository.')
param fluxGitUsername string = 'git'

@description('The host that the token of Flux is for, with its port if that is not 443; it is given to no other.')
param fluxGitHost string = 'github.com'

@description('The password or token with which Flux reads the fleet repository; empty for a public one.')
@secure()
param fluxGitPassword string = ''

@description('The vaults with the values of bootstrap secrets: name, resourceGroup and subscriptionId of each, which must exist and use Azure RBAC. Manifests can name no other vault.')
param bootstrapVaults array = []

@description('Those of bootstrapVaults that have nothing but the keys with which the Flux of each cluster signs what it reports: the app with the webhook reads them too. With one, requests without a token reach that app, which then asks for a key or a signature.')
param fluxEventVaults array = []

@description('The client id of the app registration with which people and scripts sign in; without it, keys alone open the API.')
param entraClientId string = ''

@description('A key for scripts with the role Reader, of 20 characters or more; empty for none.')
@secure()
param apiKeyReader string = ''

@description('A key for scripts with the role Operator, of 20 characters or more; empty for none.')
@secure()
param apiKeyOperator string = ''

@description('A key for scripts with the role Approver, of 20 characters or more; empty for none.')
@secure()
param apiKeyApprover string = ''

@description('A key for scripts with the role Admin, of 20 characters or more; empty for none.')
@secure()
param apiKeyAdmin string = ''

@description('When to look for a commit whose webhook was lost: six-field NCRONTAB, UTC.')
param planSchedule string = '0 */5 * * * *'

@description('When to look for jobs whose next message is overdue: six-field NCRONTAB, UTC.')
param resendSchedule string = '30 * * * * *'

@description('When to remove what is old: events, plans, deliveries, dead letters. Six-field NCRONTAB, UTC.')
param retentionSchedule string = '0 30 3 * * *'

@description('When to compare the clusters in Azure with the records: six-field NCRONTAB, UTC. A sweep begins within ten minutes after that.')
param sweepSchedule string = '0 10 */4 * * *'

@description('When to check the clusters from inside: six-field NCRONTAB, UTC. A check begins within five minutes after that.')
param checkSchedule string = '0 40 */4 * * *'

@description('Instances of the app with the webhook that are kept warm. With 0 no instance is billed between executions, and a webhook that meets a cold start of over 10 seconds is left to the timer.')
@minValue(0)
@maxValue(10)
param alwaysReady int = 0

@description('The most instances of each app that may run at one time.')
@minValue(40)
@maxValue(1000)
param maximumInstances int = 40

@description('The addresses of notifications and their secrets, such as OPS_SLACK.')
@secure()
param notificationAddresses object = {}

@description('The keys of the external systems that approve stages of rollouts, by name, such as CHANGES.')
@secure()
param approvalKeys object = {}

@description('The hosts that checks of gates may ask, such as prometheus.example.com; without one they ask nobody.')
param rolloutCheckHosts array = []

@description('Ids of the action groups that alerts call. With one, the app is also asked every quarter of an hour whether it is ready.')
param alertActionGroupIds array = []

@description('Settings of docs/settings.md that have no parameter here, by their names; every app gets them.')
param moreSettings object = {}

@description('Also create a system topic in each target subscription, which says when somebody changes a cluster there.')
param hearAzureEvents bool = true

@description('Tags for every resource.')
param tags object = {}

var allTags = union(tags, { 'roadstead-fleet': fleet })
// A reference to a secret that is not there would reach the app as if its own text were the secret: none is
// made then.
var secret = '@Microsoft.KeyVault(VaultName=${vault.outputs.name};SecretName='
var unique = uniqueString(subscription().id, resourceGroupName, fleet)
var appName = '${take('roadstead-${fleet}', 45)}-${take(unique, 6)}'
// NOTIFY_OPS_SLACK refers to the secret notify-ops-slack.
var addressSettings = toObject(
  items(notificationAddresses),
  address => 'NOTIFY_${address.key}',
  address => '${secret}notify-${toLower(replace(address.key, '_', '-'))})'
)
// APPROVAL_KEY_CHANGES refers to the secret approval-changes.
var approvalSettings = toObject(
  items(approvalKeys),
  key => 'APPROVAL_KEY_${key.key}',
  key => '${secret}approval-${toLower(replace(key.key, '_', '-'))})'
)
// The planner refuses a manifest with another vault, and the worker opens no other one.
var vaultAddresses = join(
  map(bootstrapVaults, each => 'https://${each.name}${environment().suffixes.keyvaultDns}'),
  ','
)
var appIds = [
  controlIdentity.outputs.clientId
  workerIdentity.outputs.clientId
  deleterIdentity.outputs.clientId
]
var principalIds = [
  controlIdentity.outputs.principalId
  workerIdentity.outputs.principalId
  deleterIdentity.outputs.principalId
]
// What every app reads. The modules of the apps add what only one of them uses.
var settings = {
  ROADSTEAD_FLEET: fleet
  ROADSTEAD_INSTALLATION: installationId
  APP_RESOURCE_GROUP: group.id
  APP_PRINCIPALS: join(concat(appIds, principalIds), ',')
  GITHUB_API_URL: githubApiUrl
  GITHUB_REPOSITORY: githubRepository
  GITHUB_REPOSITORY_PREVIOUS: githubRepositoryPrevious
  GITHUB_BRANCH: githubBranch
  GITHUB_TOKEN: empty(githubToken) ? '' : '${secret}github-token)'
  GITHUB_APP_ID: githubAppId
  GITHUB_APP_PRIVATE_KEY: empty(githubAppPrivateKey) ? '' : '${secret}github-app-private-key)'
  GITHUB_APP_INSTALLATION_ID: githubAppInstallationId
  ServiceBus__fullyQualifiedNamespace: serviceBus.outputs.fullyQualifiedNamespace
  TABLES_ENDPOINT: storage.outputs.tablesEndpoint
}

resource group 'Microsoft.Resources/resourceGroups@2024-03-01' = {
  name: resourceGroupName
  location: location
  tags: allTags
}

module controlIdentity 'identity.bicep' = {
  scope: group
  name: 'identity-control'
  params: {
    name: 'id-roadstead-${fleet}-control'
    location: location
    tags: allTags
  }
}

module workerIdentity 'identity.bicep' = {
  scope: group
  name: 'identity-worker'
  params: {
    name: 'id-roadstead-${fleet}-worker'
    location: location
    tags: allTags
  }
}

module deleterIdentity 'identity.bicep' = {
  scope: group
  name: 'identity-deleter'
  params: {
    name: 'id-roadstead-${fleet}-deleter'
    location: location
    tags: allTags
  }
}

module monitoring 'monitoring.bicep' = {
  scope: group
  name: 'monitoring'
  params: {
    unique: unique
    location: location
    tags: allTags
    principalIds: [
      controlIdentity.outputs.principalId
      workerIdentity.outputs.principalId
      deleterIdentity.outputs.principalId
    ]
  }
}

module alerts 'alerts.bicep' = {
  scope: group
  name: 'alerts'
  params: {
    componentName: monitoring.outputs.componentName
    fleet: fleet
    location: location
    tags: allTags
    actionGroups: alertActionGroupIds
  }
}

module workbook 'workbook.bicep' = {
  scope: group
  name: 'workbook'
  params: {
    componentName: monitoring.outputs.componentName
    fleet: fleet
    location: location
    tags: allTags
  }
}

module controlHost 'host.bicep' = {
  scope: group
  name: 'host-control'
  params: {
    name: 'st${unique}'
    location: location
    tags: allTags
    principalId: controlIdentity.outputs.principalId
  }
}

module workerHost 'host.bicep' = {
  scope: group
  name: 'host-worker'
  params: {
    name: 'st${unique}w'
    location: location
    tags: allTags
    principalId: workerIdentity.outputs.principalId
  }
}

module deleterHost 'host.bicep' = {
  scope: group
  name: 'host-deleter'
  params: {
    name: 'st${unique}d'
    location: location
    tags: allTags
    principalId: deleterIdentity.outputs.principalId
  }
}

module storage 'storage.bicep' = {
  scope: group
  name: 'storage'
  params: {
    name: controlHost.outputs.name
    principalIds: [
      controlIdentity.outputs.principalId
      workerIdentity.outputs.principalId
      deleterIdentity.outputs.principalId
    ]
  }
}

module serviceBus 'servicebus.bicep' = {
  scope: group
  name: 'servicebus'
  params: {
    name: 'sb-roadstead-${unique}'
    location: location
    tags: allTags
    controlPrincipalId: controlIdentity.outputs.principalId
    workerPrincipalId: workerIdentity.outputs.principalId
    deleterPrincipalId: deleterIdentity.outputs.principalId
  }
}

module vault 'vault.bicep' = {
  scope: group
  name: 'vault'
  params: {
    name: 'kv-${unique}'
    location: location
    tags: allTags
    controlPrincipalId: controlIdentity.outputs.principalId
    workerPrincipalId: workerIdentity.outputs.principalId
    deleterPrincipalId: deleterIdentity.outputs.principalId
    githubToken: githubToken
    githubAppPrivateKey: githubAppPrivateKey
    githubWebhookSecret: githubWebhookSecret
    githubWebhookSecretPrevious: githubWebhookSecretPrevious
    fluxGitPassword: fluxGitPassword
    apiKeyReader: apiKeyReader
    apiKeyOperator: apiKeyOperator
    apiKeyApprover: apiKeyApprover
    apiKeyAdmin: apiKeyAdmin
    notificationAddresses: notificationAddresses
    approvalKeys: approvalKeys
  }
}

module control 'function.bicep' = {
  scope: group
  name: 'function-control'
  params: {
    name: appName
    app: 'control'
    location: location
    tags: allTags
    identityName: controlIdentity.outputs.name
    componentName: monitoring.outputs.componentName
    storageName: controlHost.outputs.name
    deploymentContainer: controlHost.outputs.deploymentContainer
    alwaysReady: alwaysReady
    maximumInstances: maximumInstances
    moreSettings: moreSettings
    settings: union(settings, {
      GITHUB_WEBHOOK_SECRET: '${secret}github-webhook-secret)'
      GITHUB_WEBHOOK_SECRET_PREVIOUS: empty(githubWebhookSecretPrevious) ? '' : '${secret}github-webhook-secret-previous)'
      SIGN_IN: empty(entraClientId) ? 'keys' : 'entra'
      API_KEY_READER: empty(apiKeyReader) ? '' : '${secret}api-key-reader)'
      API_KEY_OPERATOR: empty(apiKeyOperator) ? '' : '${secret}api-key-operator)'
      API_KEY_APPROVER: empty(apiKeyApprover) ? '' : '${secret}api-key-approver)'
      API_KEY_ADMIN: empty(apiKeyAdmin) ? '' : '${secret}api-key-admin)'
      PLAN_SCHEDULE: planSchedule
      RESEND_SCHEDULE: resendSchedule
      RETENTION_SCHEDULE: retentionSchedule
      SWEEP_SCHEDULE: sweepSchedule
      CHECK_SCHEDULE: checkSchedule
      KEY_VAULTS: vaultAddresses
      FLUX_GIT_HOST: fluxGitHost
      ROLLOUT_CHECK_HOSTS: join(rolloutCheckHosts, ',')
    }, addressSettings, approvalSettings)
  }
}

module worker 'function.bicep' = {
  scope: group
  name: 'function-worker'
  params: {
    name: '${appName}-worker'
    app: 'worker'
    location: location
    tags: allTags
    identityName: workerIdentity.outputs.name
    componentName: monitoring.outputs.componentName
    storageName: workerHost.outputs.name
    deploymentContainer: workerHost.outputs.deploymentContainer
    alwaysReady: 0
    maximumInstances: maximumInstances
    moreSettings: moreSettings
    settings: union(settings, {
      FLUX_GIT_USERNAME: fluxGitUsername
      FLUX_GIT_HOST: fluxGitHost
      FLUX_GIT_PASSWORD: empty(fluxGitPassword) ? '' : '${secret}flux-git-password)'
      KEY_VAULTS: vaultAddresses
      PUBLIC_URL: 'https://${control.outputs.hostName}'
    })
  }
}

module deleter 'function.bicep' = {
  scope: group
  name: 'function-deleter'
  params: {
    name: '${appName}-deleter'
    app: 'deleter'
    location: location
    tags: allTags
    identityName: deleterIdentity.outputs.name
    componentName: monitoring.outputs.componentName
    storageName: deleterHost.outputs.name
    deploymentContainer: deleterHost.outputs.deploymentContainer
    alwaysReady: 0
    maximumInstances: maximumInstances
    moreSettings: moreSettings
    settings: settings
  }
}

module signIn 'sign_in.bicep' = if (!empty(entraClientId)) {
  scope: group
  name: 'sign-in'
  params: {
    appName: control.outputs.name
    clientId: entraClientId
    othersToo: !empty('${apiKeyReader}${apiKeyOperator}${apiKeyApprover}${apiKeyAdmin}') || !empty(fluxEventVaults) || !empty(approvalKeys)
  }
}

module health 'health.bicep' = if (!empty(alertActionGroupIds)) {
  scope: group
  name: 'health'
  params: {
    unique: unique
    location: location
    tags: allTags
    componentName: monitoring.outputs.componentName
    hostName: control.outputs.hostName
    actionGroupIds: alertActionGroupIds
  }
}

module epoch 'epoch.bicep' = {
  scope: group
  name: 'roadstead-epoch-${unique}'
  params: {
    controlPrincipalId: controlIdentity.outputs.principalId
    workerPrincipalId: workerIdentity.outputs.principalId
    deleterPrincipalId: deleterIdentity.outputs.principalId
  }
}

module access 'access.bicep' = [
  for target in targetSubscriptions: {
    scope: subscription(target)
    name: 'roadstead-access-${unique}'
    params: {
      controlPrincipalId: controlIdentity.outputs.principalId
      workerPrincipalId: workerIdentity.outputs.principalId
      deleterPrincipalId: deleterIdentity.outputs.principalId
      grantKubernetesAdmin: grantKubernetesAdmin
      readActivityLog: readActivityLog
      assignableRoles: assignableRoles
      federates: !empty(federatedIdentities)
      assignPolicies: assignPolicies
      manageNamespaces: manageNamespaces
    }
  }
]

module events 'events.bicep' = [
  for target in hearAzureEvents ? targetSubscriptions : []: {
    scope: subscription(target)
    name: 'roadstead-events-${unique}'
    params: {
      fleet: fleet
      location: location
      queueId: serviceBus.outputs.eventsQueueId
      appIds: appIds
    }
  }
]

module federatedIdentity 'federated_identity.bicep' = [
  for target in federatedIdentities: {
    scope: resourceGroup(target.subscriptionId, target.resourceGroup)
    name: 'roadstead-${target.name}-${unique}'
    params: {
      name: target.name
      workerPrincipalId: workerIdentity.outputs.principalId
      deleterPrincipalId: deleterIdentity.outputs.principalId
    }
    dependsOn: [access]
  }
]

module bootstrapAccess 'bootstrap_vault.bicep' = [
  for target in bootstrapVaults: {
    scope: resourceGroup(target.subscriptionId, target.resourceGroup)
    name: 'roadstead-${target.name}-${unique}'
    params: {
      name: target.name
      principalId: workerIdentity.outputs.principalId
    }
  }
]

module fluxEventAccess 'bootstrap_vault.bicep' = [
  for target in fluxEventVaults: {
    scope: resourceGroup(target.subscriptionId, target.resourceGroup)
    name: 'roadstead-events-${target.name}-${unique}'
    params: {
      name: target.name
      principalId: controlIdentity.outputs.principalId
    }
  }
]

@description('The resource group of the function apps.')
output resourceGroupName string = group.name

@description('The function apps, to publish the code to each: the first has the API and the webhook.')
output functionAppNames array = [control.outputs.name, worker.outputs.name, deleter.outputs.name]

@description('The id by which the app knows its clusters: an app that replaces this one needs it.')
output installationId string = installationId

@description('The payload URL of the webhook at GitHub; its content type is application/json.')
output webhookUrl string = 'https://${control.outputs.hostName}/api/github'

@description('The identity of the app that writes clusters, for role assignments of your own.')
output principalId string = workerIdentity.outputs.principalId

@description('The queue of Azure\'s events, for whoever deploys events.bicep to a subscription.')
output eventsQueueId string = serviceBus.outputs.eventsQueueId

@description('The client ids of the apps, likewise.')
output appIds array = appIds

@description('The Key Vault that holds the secrets.')
output keyVaultName string = vault.outputs.name
