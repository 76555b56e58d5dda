// What parameters of several templates take.

@export()
@description('The id of a subscription, a tenant, an app or the definition of a role.')
@minLength(36)
@maxLength(36)
type uuid = string

@export()
@description('A resource of yours that exists.')
@sealed()
type existing = {
  @description('Its name.')
  @minLength(1)
  name: string

  @description('Its resource group.')
  @minLength(1)
  @maxLength(90)
  resourceGroup: string

  @description('The id of its subscription.')
  subscriptionId: uuid
}

@export()
@description('A resource group of yours that exists.')
@sealed()
type groupPlace = {
  @description('Its name.')
  @minLength(1)
  @maxLength(90)
  resourceGroup: string

  @description('The id of its subscription.')
  subscriptionId: uuid
}

@export()
@description('Tags of a resource, or settings of an app: texts by name.')
type texts = {
  *: string
}

@export()
@description('An app of the fleet.')
type app = 'control' | 'worker' | 'deleter'

@export()
@description('The ids of the identities of the apps in the directory.')
@sealed()
type principals = {
  @description('Of the app that has the webhook, the API, the planner and the timers.')
  control: string

  @description('Of the app that creates and changes clusters.')
  worker: string

  @description('Of the app that deletes clusters.')
  deleter: string
}

@description('Instances that are kept warm. Each is billed for its memory all the time.')
@minValue(0)
@maxValue(20)
type instances = int

@export()
@description('Instances that are kept warm, by the functions that scale together.')
@sealed()
type warm = {
  @description('The webhook and the API.')
  http: instances?

  @description('The plan of a push.')
  planner: instances?

  @description('The plan of a pull request.')
  previewer: instances?

  @description('Jobs that create clusters, and large changes.')
  worker: instances?

  @description('Small changes.')
  changer: instances?

  @description('Deletes.')
  deleter: instances?
}

@export()
@description('How often storage has what is written: three times in one place, in three zones, and each with a copy in a second region.')
type redundancy = 'Standard_LRS' | 'Standard_ZRS' | 'Standard_GRS' | 'Standard_GZRS'

@export()
@description('The ids of private DNS zones.')
@sealed()
type zones = {
  @description('Of blobs: privatelink.blob.core.windows.net.')
  blob: string?

  @description('Of tables: privatelink.table.core.windows.net.')
  table: string?

  @description('Of Service Bus: privatelink.servicebus.windows.net.')
  serviceBus: string?

  @description('Of Key Vault: privatelink.vaultcore.azure.net.')
  vault: string?

  @description('Of the apps, with a private entrance: privatelink.azurewebsites.net.')
  sites: string?
}

@export()
@description('Names of resources that follow a convention of yours; the rest have their own.')
@sealed()
type names = {
  @description('The app with the webhook; the others have it with -worker and -deleter.')
  @minLength(2)
  @maxLength(47)
  app: string?

  @description('The Service Bus namespace.')
  @minLength(6)
  @maxLength(50)
  serviceBus: string?

  @description('The key vault.')
  @minLength(3)
  @maxLength(24)
  vault: string?

  @description('The storage account of the app with the webhook; the others have it with w and d.')
  @minLength(3)
  @maxLength(23)
  storage: string?

  @description('The Log Analytics workspace.')
  @minLength(4)
  @maxLength(63)
  workspace: string?

  @description('The Application Insights component.')
  @minLength(1)
  @maxLength(255)
  component: string?

  @description('The virtual network.')
  @minLength(2)
  @maxLength(60)
  network: string?
}

@export()
@description('Who may call an app.')
type rule = {
  name: string
  action: 'Allow' | 'Deny'
  priority: int
  ipAddress: string
  tag: 'Default' | 'ServiceTag'
}

@export()
@description('A workspace of Azure Monitor.')
@sealed()
type monitored = {
  @description('What manifests call it.')
  @minLength(1)
  @maxLength(63)
  name: string

  @description('Where it answers queries: the query endpoint of a managed Prometheus, or https://api.loganalytics.azure.com/v1/workspaces/ID.')
  url: string

  @description('The name of the resource.')
  workspace: string
  resourceGroup: string
  subscriptionId: string
}
