// Copy this file, change it, and keep the secrets out of it: they come from the environment.
using 'main.bicep'

param fleet = 'example'
param githubRepository = 'example/fleet'
param targetSubscriptions = ['00000000-0000-0000-0000-000000000001']

param entraClientId = '00000000-0000-0000-0000-000000000002'

// What the environment does not have stays as the vault has it.
param secrets = ['github-token', 'github-webhook-secret']
param secretValues = {
  'github-token': readEnvironmentVariable('GITHUB_TOKEN', '')
  'github-webhook-secret': readEnvironmentVariable('GITHUB_WEBHOOK_SECRET', '')
}
