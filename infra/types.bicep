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
