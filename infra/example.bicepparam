// Copy this file, change it, and keep the secrets out of it: they come from the environment.
using 'main.bicep'

param fleet = 'example'
param githubRepository = 'example/fleet'
param targetSubscriptions = ['00000000-0000-0000-0000-000000000001']

param entraClientId = '00000000-0000-0000-0000-000000000002'

param githubToken = readEnvironmentVariable('GITHUB_TOKEN')
param githubWebhookSecret = readEnvironmentVariable('GITHUB_WEBHOOK_SECRET')
param fluxGitPassword = readEnvironmentVariable('FLUX_GIT_PASSWORD', '')
