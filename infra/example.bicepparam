// Copy this file, change it, and keep the secrets out of it: roadstead setup github writes them into the vault.
using 'main.bicep'

param fleet = 'example'
param githubRepository = 'example/fleet'
param targetSubscriptions = ['00000000-0000-0000-0000-000000000001']

param entraClientId = '00000000-0000-0000-0000-000000000002'

// With a token instead: 'github-token' and 'github-webhook-secret', and their values from the environment:
// param secretValues = {
//   'github-token': readEnvironmentVariable('GITHUB_TOKEN', '')
//   'github-webhook-secret': readEnvironmentVariable('GITHUB_WEBHOOK_SECRET', '')
// }
param secrets = [
  'github-app-id'
  'github-app-installation-id'
  'github-app-private-key'
  'github-webhook-secret'
  'github-webhook-secret-previous'
]
