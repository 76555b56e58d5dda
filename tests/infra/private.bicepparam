// A new network in which nothing but the apps is reached, and they by private endpoints only.
using '../../infra/main.bicep'

param fleet = 'one'
param githubRepository = 'example/fleet'
param secrets = ['github-token', 'github-webhook-secret']
param network = 'private'
param entrance = 'private'
param alertActionGroupIds = [
  '/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/alerts/providers/Microsoft.Insights/actionGroups/duty'
]
