// Only what a fleet cannot do without.
using '../../infra/main.bicep'

param fleet = 'one'
param githubRepository = 'example/fleet'
param secrets = ['github-token', 'github-webhook-secret']
