// Everything that one Roadstead fleet needs in Azure: one deployment at the scope of a subscription.
// The function apps live in a resource group of their own; each target subscription gets a role for each app.
targetScope = 'subscription'

import { fits, gitServer, has, isId, isOfType, isRange, lacks, letters, signs, small } from 'checks.bicep'
import { existing, groupPlace, monitored, names, principals, redundancy, texts, uuid, warm, zones } from 'types.bicep'

@description('The name of the fleet: lower-case letters, digits and hyphens. It is in the names and tags of all resources.')
@minLength(1)
@maxLength(63)
param fleet string

@description('The region of the function apps and their data. The clusters may be anywhere.')
param location string = deployment().location

@description('The resource group to create for the function apps.')
@minLength(1)
@maxLength(90)
param resourceGroupName string = 'roadstead-${fleet}'

@description('Whether to create the resource group. Without, it exists, and its tags stay as they are.')
param createResourceGroup bool = true

@description('Names of resources that follow a convention of yours.')
param resourceNames names = {}

@description('Which network the apps are in. public: none. outbound: they call others from a subnet, and reach private clusters. private: storage, Service Bus (which is Premium then) and the vault have private endpoints besides, and no public access.')
param network 'public' | 'outbound' | 'private' = 'public'

@description('The addresses of a new network: 256 or more, as a range such as 10.64.0.0/24.')
param networkAddresses string = '10.64.0.0/24'

@description('The id of a subnet for the apps that exists: delegated to Microsoft.App/environments, with 128 addresses or more, used by nothing else. With none, a network is created.')
param appsSubnetId string = ''

@description('The id of a subnet for private endpoints that exists, in the network of appsSubnetId.')
param endpointsSubnetId string = ''

@description('The ids of private DNS zones that exist, and are linked to the network. With none, they are created.')
param dnsZones zones = {}

@description('Whether a policy of yours writes the addresses of private endpoints into DNS. Then no zone is created or used.')
param dnsByPolicy bool = false

@description('How the apps are reached. public: at their addresses, for webhooks, people and scripts. private: through private endpoints only. No webhook arrives then, unless a gateway of yours passes it on: the timer looks for commits.')
param entrance 'public' | 'private' = 'public'

@description('The ranges that may call the app with the webhook at its public address, such as those of GitHub (hooks, at api.github.com/meta) and of your office. With none, everybody may.')
param entranceAddresses string[] = []

@description('Whether this deployment also gives the apps their roles in the target subscriptions. Without, their owner deploys access.bicep with the output identities.')
param assignRoles bool = true

@description('The id by which the app knows its clusters, whatever happens to its tables. An app that replaces another one takes the id of that one.')
@minLength(8)
@maxLength(64)
param installationId string = guid(subscription().id, resourceGroupName, fleet)

@description('The ids of the subscriptions that hold the clusters. Whoever deploys must be allowed to assign roles there.')
@minLength(1)
param targetSubscriptions uuid[] = [subscription().subscriptionId]

@description('Also make the worker a Kubernetes administrator of clusters that take Entra identities only (no local accounts).')
param grantKubernetesAdmin bool = false

@description('Also let sweeps read the activity log of the target subscriptions, so that drift has who changed it.')
param readActivityLog bool = false

@description('Also let the control app read once a day what Azure has billed for the clusters of the target subscriptions.')
param readCosts bool = false

@description('The roles, by the ids of their definitions, that manifests may give to identities (spec.roleAssignments). With none, no app may assign a role.')
param assignableRoles uuid[] = []

@description('The identities that pods of clusters may act as (spec.federatedCredentials). They exist, in target subscriptions. With none, no app may write a federated credential.')
param federatedIdentities existing[] = []

@description('Resource groups in which the app creates identities of clusters (spec.identities), and all of whose identities pods may act as. They exist, in target subscriptions, and hold nothing else. With none, no app may create an identity.')
param identityGroups groupPlace[] = []

@description('Also let manifests assign policies of Azure Policy to clusters (spec.policies), in the target subscriptions.')
param assignPolicies bool = false

@description('Also let systems have namespaces that AKS manages (spec.managedNamespaces of a system), in the target subscriptions.')
param manageNamespaces bool = false

@description('What has the fleet repository: GitHub, GitLab, Azure DevOps, or git for any git server over HTTPS or SSH, which has no pull requests, statuses and webhooks.')
param gitHost 'github' | 'gitlab' | 'azure-devops' | 'git' = 'github'

@description('Without GitHub: the address of the fleet repository, such as https://git.example.com/team/fleet.git, without a credential in it. With git also ssh://git@git.example.com/team/fleet.git.')
param gitUrl string = ''

@description('Without GitHub: the branch that is the desired state.')
param gitBranch string = 'main'

@description('With git: the user name that goes with the secret git-password; for most servers any name goes with a token.')
param gitUsername string = ''

@description('With git over SSH: the keys of the server, as lines of known_hosts. A server with another key is not asked.')
param gitKnownHosts string = ''

@description('The fleet repository on GitHub, as owner/name; empty with another git host.')
param githubRepository string

@description('What the fleet repository was called before a rename: owner/name, or the path of the former gitUrl without .git.')
param repositoryPrevious string = ''

@description('The branch that is the desired state.')
param githubBranch string = 'main'

@description('The REST API of GitHub, or of a GitHub Enterprise Server: https://HOST/api/v3.')
param githubApiUrl string = 'https://api.github.com'

@description('The secrets that the vault has, by their names: github-webhook-secret, and github-token (fine-grained: contents read, commit statuses write, pull requests write) or github-app-id, github-app-installation-id and github-app-private-key (PEM), which roadstead setup github writes. Where they are used, github-webhook-secret-previous (a second one that is accepted, while the secret is being changed), git-password (with which the apps read GitLab or any git server), git-ssh-key (the same over SSH: a private key), git-webhook-secret and git-webhook-secret-previous (what webhooks of GitLab and Azure DevOps have; roadstead setup writes them), flux-git-password (with which Flux reads the fleet repository), api-key-reader, api-key-operator, api-key-approver, api-key-admin (keys for scripts with that role), notify-NAME (an address of notifications or its secret) and approval-NAME (the key of a system that approves stages).')
param secrets string[]

@description('Values to write, by name, such as readEnvironmentVariable(...). What has none here, or an empty one, stays as the vault has it.')
@secure()
param secretValues {
  *: string
} = {}

@description('Also let an Admin register the GitHub App on the page /setup/github of the app: the app with the webhook may then write the secrets of its GitHub App. Take it back once the App is there.')
param setUpInBrowser bool = false

@description('The user name with which Flux in the clusters reads the fleet repository.')
param fluxGitUsername string = 'git'

@description('The host that the token of Flux is for, with its port if that is not 443; it is given to no other.')
param fluxGitHost string = gitHost == 'github' ? 'github.com' : gitServer(gitUrl)

@description('The vaults with the values of bootstrap secrets, which exist and use Azure RBAC. Manifests can name no other vault.')
param bootstrapVaults existing[] = []

@description('Those of bootstrapVaults that have nothing but the keys with which the Flux of each cluster signs what it reports: the app with the webhook reads them too. With one, requests without a token reach that app, which then asks for a key or a signature.')
param fluxEventVaults existing[] = []

@description('The client id of the app registration with which people and scripts sign in; without it, keys alone open the API.')
param entraClientId string = ''

@description('When to look for a commit whose webhook was lost: six-field NCRONTAB, UTC. The second follows from the name of the fleet, so that the fleets of a git server do not all ask at once.')
param planSchedule string = '${max(0, indexOf('abcdefghijklmnopqrstuvwxyz234567', take(uniqueString(fleet), 1)))} */5 * * * *'

@description('When to look for jobs whose next message is overdue: six-field NCRONTAB, UTC.')
param resendSchedule string = '30 * * * * *'

@description('When to remove what is old: events, plans, deliveries, dead letters. Six-field NCRONTAB, UTC.')
param retentionSchedule string = '0 30 3 * * *'

@description('When to compare the clusters in Azure with the records: six-field NCRONTAB, UTC. A sweep begins within ten minutes after that.')
param sweepSchedule string = '0 10 */4 * * *'

@description('When to check the clusters from inside: six-field NCRONTAB, UTC. A check begins within five minutes after that.')
param checkSchedule string = '0 40 */4 * * *'

@description('Instances that are kept warm, by http, planner, previewer, worker, changer or deleter. What has none starts from zero: a webhook that meets a start of over 10 seconds is left to the timer, and the first message of a queue can wait two minutes. The output alwaysReadyGigabyteSeconds says what is billed for them in a month.')
param alwaysReady warm = {}

@description('Whether the apps run in several zones of the region. Azure then keeps at least two warm instances for each function, which are billed: see the output alwaysReadyGigabyteSeconds.')
param zoneRedundant bool = false

@description('What an update of the code or a setting does to running instances: RollingUpdate (a preview) lets them end what they do, Recreate ends them. Where the region has no rolling update, take Recreate.')
param updates 'RollingUpdate' | 'Recreate' = 'RollingUpdate'

@description('The redundancy of storage. Where the region has no zones, take Standard_GRS or Standard_LRS.')
param storageRedundancy redundancy = 'Standard_ZRS'

@description('Whether locks keep the vault and the tables from being deleted with their resource group. Remove the locks before you remove the deployment.')
param locks bool = true

@description('Gigabytes of logs a day: what comes after that is not kept, until the next day.')
@minValue(1)
param logGigabytesPerDay int = 5

@description('The most instances of each app that may run at one time.')
@minValue(40)
@maxValue(1000)
param maximumInstances int = 40

@description('The hosts that checks of gates may ask, such as prometheus.example.com; without one they ask nobody.')
param rolloutCheckHosts string[] = []

@description('The workspaces of Azure Monitor that checks of gates may query. They exist; the control app gets the role of a reader on each. With none, they query nothing.')
param monitorWorkspaces monitored[] = []

@description('Also let checks of gates read the alerts that fire in the target subscriptions.')
param readAlerts bool = false

@description('Ids of the action groups that alerts call. With one, the app is also asked every quarter of an hour whether it is ready.')
param alertActionGroupIds string[] = []

@description('Settings of docs/settings.md that have no parameter here, by their names; every app gets them.')
param moreSettings texts = {}

@description('Also create a system topic in each target subscription, which says when somebody changes a cluster there.')
param hearAzureEvents bool = true

@description('Tags for every resource.')
param tags texts = {}

var isPrivate = network == 'private'
var inNetwork = network != 'public'
var usedZones = entrance == 'private'
  ? ['blob', 'table', 'serviceBus', 'vault', 'sites']
  : ['blob', 'table', 'serviceBus', 'vault']
var vaultIds = map(bootstrapVaults, vault => toLower('${vault.subscriptionId}/${vault.resourceGroup}/${vault.name}'))
var onGit = gitHost != 'github'
var subnets = 'Microsoft.Network/virtualNetworks'
var bySsh = gitHost == 'git' && startsWith(gitUrl, 'ssh://') && contains(gitUrl, '@')
var hasHooks = onGit && gitHost != 'git'
var byToken = contains(secrets, 'github-token')
var ofApp = ['github-app-id', 'github-app-installation-id', 'github-app-private-key']
var byApp = empty(filter(ofApp, secret => !contains(secrets, secret)))

// Each secret with the setting that refers to it, and the apps that read it. notify-ops-slack is NOTIFY_OPS_SLACK.
var everyApp = ['control', 'worker', 'deleter']
var known = {
  'github-token': { setting: 'GITHUB_TOKEN', readers: everyApp }
  'github-app-id': { setting: 'GITHUB_APP_ID', readers: everyApp }
  'github-app-installation-id': { setting: 'GITHUB_APP_INSTALLATION_ID', readers: everyApp }
  'github-app-private-key': { setting: 'GITHUB_APP_PRIVATE_KEY', readers: everyApp }
  'github-webhook-secret': { setting: 'GITHUB_WEBHOOK_SECRET', readers: ['control'] }
  'github-webhook-secret-previous': { setting: 'GITHUB_WEBHOOK_SECRET_PREVIOUS', readers: ['control'] }
  'git-password': { setting: 'GIT_PASSWORD', readers: everyApp }
  'git-ssh-key': { setting: 'GIT_SSH_KEY', readers: everyApp }
  'git-webhook-secret': { setting: 'GIT_WEBHOOK_SECRET', readers: ['control'] }
  'git-webhook-secret-previous': { setting: 'GIT_WEBHOOK_SECRET_PREVIOUS', readers: ['control'] }
  'flux-git-password': { setting: 'FLUX_GIT_PASSWORD', readers: ['worker'] }
  'api-key-reader': { setting: 'API_KEY_READER', readers: ['control'] }
  'api-key-operator': { setting: 'API_KEY_OPERATOR', readers: ['control'] }
  'api-key-approver': { setting: 'API_KEY_APPROVER', readers: ['control'] }
  'api-key-admin': { setting: 'API_KEY_ADMIN', readers: ['control'] }
}
var ofSystems = filter(secrets, secret => startsWith(secret, 'notify-') || startsWith(secret, 'approval-'))
var unknown = filter(
  secrets,
  secret =>
    !contains(known, secret) && (!contains(ofSystems, secret) || endsWith(secret, '-') || !has(secret, '${small}-'))
)
var allSecrets = union(
  known,
  toObject(ofSystems, secret => secret, secret => {
    setting: toUpper(replace(
      startsWith(secret, 'notify-') ? secret : replace(secret, 'approval-', 'approval-key-'),
      '-',
      '_'
    ))
    readers: ['control']
  })
)

// What a type cannot say of names. Those with an address may not have words that Azure reserves:
// learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-reserved-resource-name.
var nameRules = [
  {
    name: 'app'
    begin: signs
    all: '${signs}-'
    end: signs
    takes: 'letters, digits and hyphens, with a letter or digit at each end'
  }
  {
    name: 'serviceBus'
    begin: letters
    all: '${signs}-'
    end: signs
    takes: 'letters, digits and hyphens, with a letter first'
  }
  {
    name: 'vault'
    begin: letters
    all: '${signs}-'
    end: signs
    takes: 'letters, digits and single hyphens, with a letter first'
  }
  { name: 'storage', begin: small, all: small, end: small, takes: 'lower-case letters and digits' }
  {
    name: 'workspace'
    begin: signs
    all: '${signs}-'
    end: signs
    takes: 'letters, digits and hyphens, with a letter or digit at each end'
  }
  {
    name: 'network'
    begin: signs
    all: '${signs}-_.'
    end: '${signs}_'
    takes: 'letters, digits, hyphens, underscores and periods, with a letter or digit first'
  }
]
var wrongNames = filter(
  nameRules,
  rule => contains(resourceNames, rule.name) && !fits(resourceNames[?rule.name] ?? '', rule.begin, rule.all, rule.end)
)
var addressed = filter(['app', 'serviceBus', 'vault', 'storage'], key => contains(resourceNames, key))
var reserved = filter(
  concat(
    contains(resourceNames, 'app') ? [] : [{ parameter: 'fleet', name: 'roadstead-${fleet}' }],
    map(addressed, key => { parameter: 'resourceNames.${key}', name: toLower(resourceNames[?key] ?? '') })
  ),
  given => contains(given.name, 'microsoft') || contains(given.name, 'windows') || startsWith(given.name, 'login')
)
var ids = [
  { parameter: 'targetSubscriptions', values: targetSubscriptions }
  { parameter: 'entraClientId', values: empty(entraClientId) ? [] : [entraClientId] }
  { parameter: 'assignableRoles', values: assignableRoles }
  { parameter: 'federatedIdentities', values: map(federatedIdentities, target => target.subscriptionId) }
  { parameter: 'identityGroups', values: map(identityGroups, target => target.subscriptionId) }
  { parameter: 'bootstrapVaults', values: map(bootstrapVaults, target => target.subscriptionId) }
  { parameter: 'monitorWorkspaces', values: map(monitorWorkspaces, target => target.subscriptionId) }
]
var wrongIds = filter(ids, given => !empty(filter(given.values, id => !isId(id))))
var targets = map(targetSubscriptions, target => toLower(target))
var elsewhere = filter(
  ids,
  given =>
    contains(['federatedIdentities', 'identityGroups'], given.parameter) && !empty(filter(
      given.values,
      id => !contains(targets, toLower(id))
    ))
)
var wrongSchedules = filter(
  [
    { parameter: 'planSchedule', value: planSchedule }
    { parameter: 'resendSchedule', value: resendSchedule }
    { parameter: 'retentionSchedule', value: retentionSchedule }
    { parameter: 'sweepSchedule', value: sweepSchedule }
    { parameter: 'checkSchedule', value: checkSchedule }
  ],
  given => length(filter(split(given.value, ' '), part => !empty(part))) != 6
)
var wrongRepositories = filter(
  [
    { parameter: 'githubRepository', value: githubRepository, may: onGit }
    { parameter: 'repositoryPrevious', value: repositoryPrevious, may: onGit || empty(repositoryPrevious) }
  ],
  given =>
    !given.may && (length(split(given.value, '/')) != 2 || contains(split(given.value, '/'), '') || !has(
      given.value,
      '${signs}-_./'
    ) || endsWith(given.value, '.git'))
)
var wrongBranches = filter(
  [
    { parameter: 'githubBranch', value: githubBranch }
    { parameter: 'gitBranch', value: gitBranch }
  ],
  given => startsWith(given.value, 'refs/') || contains(given.value, ' ')
)
var zoneWords = { blob: 'blob', table: 'table', serviceBus: 'servicebus', vault: 'vaultcore', sites: 'azurewebsites' }
var wrongZones = filter(
  usedZones,
  zone =>
    contains(dnsZones, zone) && !contains(
      toLower(dnsZones[?zone] ?? ''),
      '/providers/microsoft.network/privatednszones/privatelink.${zoneWords[zone]}.'
    )
)

// What a type cannot say. Resource Manager evaluates it before it creates anything.
var sentences = [
  has(fleet, '${small}-') && !startsWith(fleet, '-') && !endsWith(fleet, '-')
    ? ''
    : 'fleet: lower-case letters, digits and hyphens, with a letter or digit at each end.'
  join(map(wrongNames, rule => 'resourceNames.${rule.name}: ${rule.takes}.'), ' ')
  lacks(resourceNames.?component ?? '', '%&\\?/') ? '' : 'resourceNames.component: none of the characters % & \\ ? /.'
  endsWith(busName, '-sb') || endsWith(busName, '-mgmt')
    ? 'resourceNames.serviceBus: no name that ends with -sb or -mgmt.'
    : ''
  contains(vaultName, '--') ? 'resourceNames.vault: no two hyphens one after the other.' : ''
  join(
    map(
      reserved,
      given => '${given.parameter}: Azure reserves the words microsoft and windows, and login at the beginning.'
    ),
    ' '
  )
  lacks(resourceGroupName, ' /\\%&?#<>:;*+@,') && !endsWith(resourceGroupName, '.')
    ? ''
    : 'resourceGroupName: letters, digits, hyphens, underscores, periods and parentheses, without a period at the end.'
  fits(installationId, small, '${small}-', small)
    ? ''
    : 'installationId: lower-case letters, digits and hyphens, with a letter or digit at each end.'
  join(map(wrongIds, given => '${given.parameter}: ids such as 00000000-0000-0000-0000-000000000001.'), ' ')
  length(union(targets, targets)) == length(targets) ? '' : 'targetSubscriptions: each subscription once.'
  join(map(elsewhere, given => '${given.parameter}: what is in one of targetSubscriptions.'), ' ')
  join(map(wrongRepositories, given => '${given.parameter}: owner/name, such as contoso/fleet.'), ' ')
  join(map(wrongBranches, given => '${given.parameter}: the name of a branch, such as main, without refs/heads/.'), ' ')
  startsWith(githubApiUrl, 'https://') && !contains(githubApiUrl, '@')
    ? ''
    : 'githubApiUrl: an address such as https://HOST/api/v3.'
  empty(unknown) ? '' : 'secrets: no secret is called ${join(unknown, ', ')}; see the description of the parameter.'
  length(union(secrets, secrets)) == length(secrets) ? '' : 'secrets: each name once.'
  onGit == ((startsWith(gitUrl, 'https://') && !contains(gitUrl, '@')) || bySsh)
    ? ''
    : 'gitUrl: without GitHub, an address such as https://git.example.com/team/fleet.git, without a credential in it.'
  gitHost != 'azure-devops' || contains(gitUrl, '/_git/')
    ? ''
    : 'gitUrl: with Azure DevOps, an address such as https://dev.azure.com/ORG/PROJECT/_git/REPOSITORY.'
  !bySsh || (contains(secrets, 'git-ssh-key') && !empty(gitKnownHosts))
    ? ''
    : 'gitUrl: over SSH, the secret git-ssh-key and gitKnownHosts.'
  onGit || contains(secrets, 'github-webhook-secret') ? '' : 'secrets: github-webhook-secret is missing.'
  !hasHooks || contains(secrets, 'git-webhook-secret') ? '' : 'secrets: git-webhook-secret is missing.'
  gitHost != 'gitlab' || contains(secrets, 'git-password')
    ? ''
    : 'secrets: git-password is missing, a token with which the apps read GitLab.'
  empty(filter(
      fluxEventVaults,
      vault => !contains(vaultIds, toLower('${vault.subscriptionId}/${vault.resourceGroup}/${vault.name}'))
    ))
    ? ''
    : 'fluxEventVaults: vaults that bootstrapVaults has too.'
  empty(filter(bootstrapVaults, vault => !fits(vault.name, letters, '${signs}-', signs)))
    ? ''
    : 'bootstrapVaults: names of vaults, not their addresses.'
  onGit || byToken || byApp ? '' : 'secrets: github-token, or ${join(ofApp, ', ')}: one of the two.'
  join(map(wrongSchedules, given => '${given.parameter}: six fields, seconds first, such as 0 */5 * * * *.'), ' ')
  empty(filter(alertActionGroupIds, id => !isOfType(id, 'Microsoft.Insights/actionGroups', 9)))
    ? ''
    : 'alertActionGroupIds: ids of action groups, from: az monitor action-group list --query [].id.'
  empty(filter(rolloutCheckHosts, host => !fits(host, signs, '${signs}.-:', signs)))
    ? ''
    : 'rolloutCheckHosts: hosts such as prometheus.example.com, without https:// and a path.'
  empty(fluxGitHost) || fits(fluxGitHost, signs, '${signs}.-:', signs)
    ? ''
    : 'fluxGitHost: a host such as github.com, without https:// and a path.'
  empty(filter(
      monitorWorkspaces,
      workspace => !startsWith(workspace.url, 'https://') || !fits(workspace.name, signs, '${signs}-', signs)
    ))
    ? ''
    : 'monitorWorkspaces: a name of letters, digits and hyphens, and a url that begins with https://.'
  empty(filter(items(moreSettings), setting => !has(setting.key, '${signs}_')))
    ? ''
    : 'moreSettings: names of settings, such as POLL_SECONDS.'
  length(tags) < 50 && empty(filter(
      items(tags),
      tag => !lacks(tag.key, '<>%&\\?/') || length(tag.key) > 128 || length(tag.value) > 256
    ))
    ? ''
    : 'tags: at most 49, with names of 128 characters without < > % & \\ ? /, and values of 256.'
  zoneRedundant && contains(counts, 1)
    ? 'alwaysReady: 2 instances or more of each, because zoneRedundant spreads them.'
    : ''
  zoneRedundant && !contains(['Standard_ZRS', 'Standard_GZRS'], storageRedundancy)
    ? 'storageRedundancy: Standard_ZRS or Standard_GZRS, because zoneRedundant needs storage in several zones.'
    : ''
  network == 'public' && !empty(appsSubnetId)
    ? 'appsSubnetId: nothing with network public; take outbound or private.'
    : ''
  !inNetwork || !empty(appsSubnetId) || (isRange(networkAddresses, 8, 24)
      ? parseCidr(networkAddresses).network == first(split(networkAddresses, '/'))
      : false)
    ? ''
    : 'networkAddresses: 256 addresses or more, as a range such as 10.64.0.0/24.'
  empty(appsSubnetId) || isOfType(appsSubnetId, subnets, 11) ? '' : 'appsSubnetId: the id of a subnet.'
  empty(endpointsSubnetId) || isOfType(endpointsSubnetId, subnets, 11) ? '' : 'endpointsSubnetId: the id of a subnet.'
  isPrivate && empty(appsSubnetId) != empty(endpointsSubnetId)
    ? 'appsSubnetId and endpointsSubnetId: both, or none for a new network.'
    : ''
  empty(appsSubnetId) || empty(endpointsSubnetId) || (toLower(appsSubnetId) != toLower(endpointsSubnetId) && first(split(
      toLower(appsSubnetId),
      '/subnets/'
    )) == first(split(toLower(endpointsSubnetId), '/subnets/')))
    ? ''
    : 'endpointsSubnetId: another subnet of the network of appsSubnetId.'
  !isPrivate && !empty(endpointsSubnetId) ? 'endpointsSubnetId: nothing without network private.' : ''
  !isPrivate && (!empty(dnsZones) || dnsByPolicy) ? 'dnsZones and dnsByPolicy: nothing without network private.' : ''
  !empty(dnsZones) && dnsByPolicy ? 'dnsZones: nothing with dnsByPolicy.' : ''
  !empty(dnsZones) && !empty(filter(usedZones, zone => !contains(dnsZones, zone)))
    ? 'dnsZones: each of ${join(usedZones, ', ')}.'
    : ''
  join(map(wrongZones, zone => 'dnsZones.${zone}: the id of a zone privatelink.${zoneWords[zone]}.'), ' ')
  setUpInBrowser && !byApp ? 'setUpInBrowser: secrets with ${join(ofApp, ', ')}.' : ''
  entrance == 'private' && !isPrivate ? 'entrance: public without network private.' : ''
  entrance == 'private' && !empty(entranceAddresses) ? 'entranceAddresses: nothing with entrance private.' : ''
  empty(filter(entranceAddresses, range => !contains(range, ':') && !isRange(range, 0, 32)))
    ? ''
    : 'entranceAddresses: ranges such as 192.30.252.0/22; a single address ends with /32.'
]
var problems = filter(sentences, sentence => !empty(sentence))
var name = empty(problems) ? fleet : fail(join(problems, ' '))

var allTags = union(tags, { 'roadstead-fleet': name })
var vaultName = resourceNames.?vault ?? 'kv-${unique}'
var unique = uniqueString(subscription().id, resourceGroupName, fleet)
// A plan has the name of its app behind 'plan-', in the 60 characters that Azure allows.
var appName = resourceNames.?app ?? '${take('roadstead-${name}', 40)}-${take(unique, 6)}'
var storageName = resourceNames.?storage ?? 'st${unique}'
var apps = {
  control: appName
  worker: '${appName}-worker'
  deleter: '${appName}-deleter'
}
// What is kept warm, and how much scales by itself in each app: its functions with HTTP together, and each other one.
var groups = [
  { app: 'control', name: 'http', instanceCount: alwaysReady.?http ?? 0 }
  { app: 'control', name: 'function:planner', instanceCount: alwaysReady.?planner ?? 0 }
  { app: 'control', name: 'function:previewer', instanceCount: alwaysReady.?previewer ?? 0 }
  { app: 'worker', name: 'function:worker', instanceCount: alwaysReady.?worker ?? 0 }
  { app: 'worker', name: 'function:changer', instanceCount: alwaysReady.?changer ?? 0 }
  { app: 'deleter', name: 'function:deleter', instanceCount: alwaysReady.?deleter ?? 0 }
]
var scaling = 18
var ready = toObject(
  everyApp,
  app => app,
  app =>
    map(filter(groups, group => group.app == app && group.instanceCount > 0), group => {
      name: group.name
      instanceCount: group.instanceCount
    })
)
var counts = map(filter(groups, group => group.instanceCount > 0), group => group.instanceCount)
var warmInstances = reduce(counts, 0, (sum, next) => sum + next) + (zoneRedundant ? 2 * (scaling - length(counts)) : 0)
var busName = resourceNames.?serviceBus ?? 'sb-roadstead-${unique}'
var eventsQueue = resourceId(
  subscription().subscriptionId,
  resourceGroupName,
  'Microsoft.ServiceBus/namespaces/queues',
  busName,
  'events'
)
var componentName = resourceNames.?component ?? 'appi-roadstead-${unique}'
// A reference to a secret that is not there would reach the app as if its own text were the secret: each app has those
// that it reads, and that are there.
var secretSettings = toObject(
  everyApp,
  app => app,
  app =>
    toObject(
      filter(secrets, secret => contains(allSecrets[secret].readers, app)),
      secret => allSecrets[secret].setting,
      secret => '@Microsoft.KeyVault(VaultName=${vaultName};SecretName=${secret})'
    )
)
// The planner refuses a manifest with another vault, and the worker opens no other one.
var subnetId = inNetwork ? appsNetwork!.outputs.appsSubnetId : ''
// The other apps have no function with HTTP. A rule that lets nobody in denies the rest.
var closed = [{ name: 'nobody', action: 'Deny', priority: 100, ipAddress: '0.0.0.0/0', tag: 'Default' }]
var asking = empty(alertActionGroupIds)
  ? []
  : [
      {
        name: 'availability-test'
        action: 'Allow'
        priority: 90
        ipAddress: 'ApplicationInsightsAvailability'
        tag: 'ServiceTag'
      }
    ]
var entranceRules = empty(entranceAddresses)
  ? []
  : concat(
      asking,
      map(range(0, length(entranceAddresses)), number => {
        name: 'entrance-${number}'
        action: 'Allow'
        priority: 100 + number
        ipAddress: entranceAddresses[number]
        tag: 'Default'
      })
    )
var vaultAddresses = join(
  map(bootstrapVaults, vault => 'https://${vault.name}${environment().suffixes.keyvaultDns}'),
  ','
)
var identities = {
  control: controlIdentity.outputs.principalId
  worker: workerIdentity.outputs.principalId
  deleter: deleterIdentity.outputs.principalId
}
var appIds = [
  controlIdentity.outputs.clientId
  workerIdentity.outputs.clientId
  deleterIdentity.outputs.clientId
]
var principalIds = [identities.control, identities.worker, identities.deleter]
// What every app reads. The modules of the apps add what only one of them uses.
var settings = {
  ROADSTEAD_FLEET: name
  ROADSTEAD_INSTALLATION: installationId
  APP_RESOURCE_GROUP: subscriptionResourceId('Microsoft.Resources/resourceGroups', resourceGroupName)
  APP_PRINCIPALS: join(concat(appIds, principalIds), ',')
  CONTROL_PRINCIPAL: identities.control
  WORKER_PRINCIPAL: identities.worker
  DELETER_PRINCIPAL: identities.deleter
  REPOSITORY_PREVIOUS: repositoryPrevious
  GIT_HOST: gitHost
  GIT_URL: gitUrl
  GIT_BRANCH: gitBranch
  GIT_USERNAME: gitUsername
  GIT_KNOWN_HOSTS: gitKnownHosts
  GITHUB_API_URL: githubApiUrl
  GITHUB_REPOSITORY: githubRepository
  GITHUB_BRANCH: githubBranch
  ServiceBus__fullyQualifiedNamespace: serviceBus.outputs.fullyQualifiedNamespace
  TABLES_ENDPOINT: storage.outputs.tablesEndpoint
  EXPORTS_URL: storage.outputs.exportsUrl
}

resource group 'Microsoft.Resources/resourceGroups@2025-04-01' = if (createResourceGroup) {
  name: resourceGroupName
  location: location
  tags: allTags
}

module controlIdentity 'identity.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    name: 'id-roadstead-${name}-control'
    location: location
    tags: allTags
  }
  dependsOn: [group]
}

module workerIdentity 'identity.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    name: 'id-roadstead-${name}-worker'
    location: location
    tags: allTags
  }
  dependsOn: [group]
}

module deleterIdentity 'identity.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    name: 'id-roadstead-${name}-deleter'
    location: location
    tags: allTags
  }
  dependsOn: [group]
}

module appsNetwork 'network.bicep' = if (inNetwork) {
  scope: resourceGroup(resourceGroupName)
  params: {
    name: resourceNames.?network ?? 'vnet-roadstead-${unique}'
    location: location
    tags: allTags
    addresses: networkAddresses
    appsSubnetId: appsSubnetId
    newZones: isPrivate && empty(dnsZones) && !dnsByPolicy ? usedZones : []
  }
  dependsOn: [group]
}

module monitoring 'monitoring.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    componentName: componentName
    workspaceName: resourceNames.?workspace ?? 'log-roadstead-${unique}'
    location: location
    tags: allTags
    principalIds: principalIds
    dailyGigabytes: logGigabytesPerDay
  }
}

module alerts 'alerts.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    componentName: componentName
    fleet: name
    location: location
    tags: allTags
    actionGroups: alertActionGroupIds
    principalId: identities.control
  }
  dependsOn: [monitoring]
}

module workbook 'workbook.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    componentName: componentName
    fleet: name
    location: location
    tags: allTags
  }
  dependsOn: [monitoring]
}

module controlHost 'host.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    name: storageName
    location: location
    tags: allTags
    sku: storageRedundancy
    isPrivate: isPrivate
    keepVersions: true
    principalId: identities.control
  }
}

module workerHost 'host.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    name: '${storageName}w'
    location: location
    tags: allTags
    sku: storageRedundancy
    isPrivate: isPrivate
    keepVersions: false
    principalId: identities.worker
  }
}

module deleterHost 'host.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    name: '${storageName}d'
    location: location
    tags: allTags
    sku: storageRedundancy
    isPrivate: isPrivate
    keepVersions: false
    principalId: deleterIdentity.outputs.principalId
  }
}

module storage 'storage.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    name: storageName
    locked: locks
    principalIds: principalIds
  }
  dependsOn: [controlHost]
}

module serviceBus 'servicebus.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    name: busName
    location: location
    tags: allTags
    workspaceId: monitoring.outputs.workspaceId
    isPrivate: isPrivate
    identities: identities
  }
}

module vault 'vault.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    name: vaultName
    location: location
    tags: allTags
    identities: identities
    secrets: map(secrets, secret => { name: secret, readers: allSecrets[secret].readers })
    values: secretValues
    workspaceId: monitoring.outputs.workspaceId
    locked: locks
    isPrivate: isPrivate
    setterId: setUpInBrowser ? identities.control : ''
  }
}

// Who is reached through a private endpoint, and whose zone has its address. The apps come after those that they read.
var accounts = 'Microsoft.Storage/storageAccounts'
var dataEndpoints = [
  { name: 'blob', zone: 'blob', type: accounts, target: storageName }
  { name: 'blob-worker', zone: 'blob', type: accounts, target: '${storageName}w' }
  { name: 'blob-deleter', zone: 'blob', type: accounts, target: '${storageName}d' }
  { name: 'table', zone: 'table', type: accounts, target: storageName }
  { name: 'bus', zone: 'serviceBus', type: 'Microsoft.ServiceBus/namespaces', target: busName }
  { name: 'vault', zone: 'vault', type: 'Microsoft.KeyVault/vaults', target: vaultName }
]

module dataEndpoint 'endpoint.bicep' = [
  for target in isPrivate ? dataEndpoints : []: {
    scope: resourceGroup(resourceGroupName)
    params: {
      name: 'pe-roadstead-${unique}-${target.name}'
      location: location
      tags: allTags
      subnetId: empty(endpointsSubnetId) ? appsNetwork!.outputs.endpointsSubnetId : endpointsSubnetId
      resourceId: resourceId(subscription().subscriptionId, resourceGroupName, target.type, target.target)
      groupId: target.zone == 'serviceBus' ? 'namespace' : target.zone
      zoneId: dnsByPolicy ? '' : (dnsZones[?target.zone] ?? appsNetwork!.outputs.zones[target.zone])
    }
    dependsOn: [storage, workerHost, deleterHost, serviceBus, vault]
  }
]

module appEndpoint 'endpoint.bicep' = [
  for app in entrance == 'private' ? everyApp : []: {
    scope: resourceGroup(resourceGroupName)
    params: {
      name: 'pe-roadstead-${unique}-${app}'
      location: location
      tags: allTags
      subnetId: empty(endpointsSubnetId) ? appsNetwork!.outputs.endpointsSubnetId : endpointsSubnetId
      resourceId: resourceId(subscription().subscriptionId, resourceGroupName, 'Microsoft.Web/sites', apps[app])
      groupId: 'sites'
      zoneId: dnsByPolicy ? '' : (dnsZones.?sites ?? appsNetwork!.outputs.zones.sites!)
    }
    dependsOn: [control, worker, deleter]
  }
]

module control 'function.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    name: apps.control
    app: 'control'
    location: location
    tags: allTags
    identityName: 'id-roadstead-${name}-control'
    componentName: componentName
    storageName: storageName
    deploymentContainer: controlHost.outputs.deploymentContainer
    alwaysReady: ready.control
    zoneRedundant: zoneRedundant
    updates: updates
    subnetId: subnetId
    publicEntrance: entrance == 'public'
    entranceRules: entranceRules
    maximumInstances: maximumInstances
    moreSettings: moreSettings
    settings: union(settings, secretSettings.control, {
      SIGN_IN: empty(entraClientId) ? 'keys' : 'entra'
      ALWAYS_READY_INSTANCES: string(warmInstances)
      PLAN_SCHEDULE: planSchedule
      RESEND_SCHEDULE: resendSchedule
      RETENTION_SCHEDULE: retentionSchedule
      SWEEP_SCHEDULE: sweepSchedule
      CHECK_SCHEDULE: checkSchedule
      KEY_VAULTS: vaultAddresses
      GITHUB_SETUP_VAULT: setUpInBrowser ? 'https://${vaultName}${environment().suffixes.keyvaultDns}' : ''
      FLUX_GIT_HOST: fluxGitHost
      ROLLOUT_CHECK_HOSTS: join(rolloutCheckHosts, ',')
      AZURE_MONITOR_WORKSPACES: join(map(monitorWorkspaces, workspace => '${workspace.name}=${workspace.url}'), ',')
    })
  }
  dependsOn: [vault, dataEndpoint]
}

module worker 'function.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    name: apps.worker
    app: 'worker'
    location: location
    tags: allTags
    identityName: 'id-roadstead-${name}-worker'
    componentName: componentName
    storageName: '${storageName}w'
    deploymentContainer: workerHost.outputs.deploymentContainer
    alwaysReady: ready.worker
    zoneRedundant: zoneRedundant
    updates: updates
    subnetId: subnetId
    publicEntrance: entrance == 'public'
    entranceRules: isPrivate ? closed : []
    maximumInstances: maximumInstances
    moreSettings: moreSettings
    settings: union(settings, secretSettings.worker, {
      FLUX_GIT_USERNAME: fluxGitUsername
      FLUX_GIT_HOST: fluxGitHost
      KEY_VAULTS: vaultAddresses
      PUBLIC_URL: 'https://${control.outputs.hostName}'
    })
  }
  dependsOn: [vault, dataEndpoint]
}

module deleter 'function.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    name: apps.deleter
    app: 'deleter'
    location: location
    tags: allTags
    identityName: 'id-roadstead-${name}-deleter'
    componentName: componentName
    storageName: '${storageName}d'
    deploymentContainer: deleterHost.outputs.deploymentContainer
    alwaysReady: ready.deleter
    zoneRedundant: zoneRedundant
    updates: updates
    subnetId: subnetId
    publicEntrance: entrance == 'public'
    entranceRules: isPrivate ? closed : []
    maximumInstances: maximumInstances
    moreSettings: moreSettings
    settings: union(settings, secretSettings.deleter)
  }
  dependsOn: [vault, dataEndpoint]
}

module signIn 'sign_in.bicep' = if (!empty(entraClientId)) {
  scope: resourceGroup(resourceGroupName)
  params: {
    appName: apps.control
    clientId: entraClientId
    othersToo: !empty(filter(secrets, secret => startsWith(secret, 'api-key-') || startsWith(secret, 'approval-'))) || !empty(fluxEventVaults)
  }
  dependsOn: [control]
}

// Nobody outside asks an app whose entrance is private.
module health 'health.bicep' = if (!empty(alertActionGroupIds) && entrance == 'public') {
  scope: resourceGroup(resourceGroupName)
  params: {
    unique: unique
    location: location
    tags: allTags
    componentName: componentName
    hostName: control.outputs.hostName
    actionGroupIds: alertActionGroupIds
  }
}

module epoch 'epoch.bicep' = {
  scope: resourceGroup(resourceGroupName)
  params: {
    identities: identities
  }
}

module access 'access.bicep' = [
  for target in assignRoles ? targetSubscriptions : []: {
    scope: subscription(target)
    params: {
      identities: identities
      grantKubernetesAdmin: grantKubernetesAdmin
      readActivityLog: readActivityLog
      readAlerts: readAlerts
      readCosts: readCosts
      assignableRoles: assignableRoles
      federates: !empty(federatedIdentities)
      createsIdentities: !empty(identityGroups)
      assignPolicies: assignPolicies
      manageNamespaces: manageNamespaces
    }
  }
]

module events 'events.bicep' = [
  for target in hearAzureEvents ? targetSubscriptions : []: {
    scope: subscription(target)
    params: {
      fleet: name
      location: location
      queueId: eventsQueue
      appIds: appIds
      tags: allTags
    }
    dependsOn: [serviceBus]
  }
]

module federatedIdentity 'federated_identity.bicep' = [
  for target in assignRoles ? federatedIdentities : []: {
    scope: resourceGroup(target.subscriptionId, target.resourceGroup)
    params: {
      name: target.name
      identities: identities
    }
    dependsOn: [access]
  }
]

module identityGroup 'identity_group.bicep' = [
  for target in assignRoles ? identityGroups : []: {
    scope: resourceGroup(target.subscriptionId, target.resourceGroup)
    params: { identities: identities }
    dependsOn: [access]
  }
]

module bootstrapAccess 'bootstrap_vault.bicep' = [
  for target in bootstrapVaults: {
    scope: resourceGroup(target.subscriptionId, target.resourceGroup)
    params: {
      name: target.name
      principalId: identities.worker
    }
  }
]

module monitorAccess 'monitor_workspace.bicep' = [
  for target in assignRoles ? monitorWorkspaces : []: {
    scope: resourceGroup(target.subscriptionId, target.resourceGroup)
    params: {
      name: target.workspace
      logs: contains(target.url, '/v1/workspaces/')
      principalId: identities.control
    }
  }
]

module fluxEventAccess 'bootstrap_vault.bicep' = [
  for target in fluxEventVaults: {
    scope: resourceGroup(target.subscriptionId, target.resourceGroup)
    params: {
      name: target.name
      principalId: identities.control
    }
  }
]

@description('The resource group of the function apps.')
output resourceGroupName string = resourceGroupName

@description('The function apps, to publish the code to each: the first has the API and the webhook.')
output functionAppNames string[] = [apps.control, apps.worker, apps.deleter]

@description('The id by which the app knows its clusters: an app that replaces this one needs it.')
output installationId string = installationId

@description('The payload URL of the webhook at the git host; its content type is application/json. With gitHost git, the address of the app alone.')
output webhookUrl string = 'https://${control.outputs.hostName}${onGit ? (hasHooks ? '/api/webhook' : '') : '/api/github'}'

@description('The identities of the apps, for whoever deploys access.bicep to a target subscription.')
output identities principals = identities

@description('The address from which a new network calls others; empty without one.')
output outgoingAddress string = inNetwork ? appsNetwork!.outputs.address : ''

@description('The identity of the app that writes clusters, for role assignments of your own.')
output principalId string = workerIdentity.outputs.principalId

@description('The queue of Azure\'s events, for whoever deploys events.bicep to a subscription.')
output eventsQueueId string = eventsQueue

@description('The client ids of the apps, likewise.')
output appIds string[] = appIds

@description('The Key Vault that holds the secrets.')
output keyVaultName string = vaultName

@description('The gigabyte-seconds of a month that are billed for warm instances of 2 GB, as the always-ready baseline of Flex Consumption, whatever they do.')
output alwaysReadyGigabyteSeconds int = warmInstances * 2 * 2628000
