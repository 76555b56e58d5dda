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
