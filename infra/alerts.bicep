// Alert rules on the metrics of docs/telemetry.md. Application Insights stores them in the table customMetrics.
import { texts } from 'types.bicep'

@description('The Application Insights component.')
param componentName string

@description('The fleet.')
param fleet string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags texts

@description('The ids of the action groups that an alert calls. Without one, alerts only show in the portal.')
param actionGroups string[] = []

@description('The identity of the control app, which reads whether each rule is enabled.')
param principalId string

// Each query returns a row for what is wrong, so every rule fires on the first row.
var rules = [
  {
    name: 'clusters-failed'
    severity: 2
    window: 'PT15M'
    description: 'Clusters are Failed or Stalled. `roadstead status --phase Failed` names them, `roadstead why NAME` the reason.'
    query: '''
      customMetrics
      | where name == "roadstead.clusters"
      | extend phase = tostring(customDimensions.phase)
      | summarize arg_max(timestamp, value) by phase
      | where phase in ("Failed", "Stalled") and value > 0'''
  }
  {
    name: 'no-measurement'
    severity: 1
    window: 'PT30M'
    description: 'The fleet was not measured for half an hour: the timers of the control app do not run.'
    query: '''
      customMetrics
      | where name == "roadstead.clusters"
      | summarize measured = count()
      | where measured == 0'''
  }
  {
    name: 'unhealthy'
    severity: 3
    window: 'PT15M'
    description: 'Flux, the nodes or the bootstrap secrets of clusters are unhealthy. `roadstead status --condition FluxHealthy=False` names them.'
    query: '''
      customMetrics
      | where name == "roadstead.conditions"
      | extend condition = tostring(customDimensions.condition), status = tostring(customDimensions.status)
      | summarize arg_max(timestamp, value) by condition, status
      | where condition in ("FluxHealthy", "PlatformHealthy", "SecretsHealthy") and status == "False" and value > 0'''
  }
  {
    name: 'drift'
    severity: 4
    window: 'PT15M'
    description: 'Clusters differ from git. `roadstead drift` shows the fields.'
    query: '''
      customMetrics
      | where name == "roadstead.drift"
      | extend policy = tostring(customDimensions.policy)
      | summarize arg_max(timestamp, value) by policy
      | where value > 0'''
  }
  {
    name: 'gaps-repaired'
    severity: 3
    window: 'PT6H'
    description: 'Webhooks were lost, and the timer found their commits. See the deliveries of the webhook in GitHub.'
    query: '''
      customMetrics
      | where name == "roadstead.repaired_gaps"
      | summarize repaired = max(value) - min(value)
      | where repaired > 3'''
  }
  {
    name: 'queue-age'
    severity: 2
    window: 'PT15M'
    description: 'Jobs wait for a worker: the worker or deleter app does not run, or has too few instances.'
    query: '''
      customMetrics
      | where name == "roadstead.queue.age"
      | summarize oldest = min(value) by tostring(customDimensions.queue)
      | where oldest > 900'''
  }
  {
    name: 'jobs-failed'
    severity: 2
    window: 'PT15M'
    description: 'Jobs failed, and wait for a commit or an operator.'
    query: '''
      customMetrics
      | where name == "roadstead.failures"
      | summarize failed = sum(valueSum) by tostring(customDimensions.error)
      | where failed > 0'''
  }
  {
    name: 'retries'
    severity: 3
    window: 'PT30M'
    description: 'Steps fail again and again. Throttled: Azure refuses calls. Unavailable: a service does not answer.'
    query: '''
      customMetrics
      | where name == "roadstead.retries"
      | summarize attempts = sum(valueSum) by tostring(customDimensions.error)
      | where attempts > 100'''
  }
  {
    name: 'plans-failed'
    severity: 1
    window: 'PT1H'
    description: 'The newest commit cannot be planned: more than one attempt failed since the last plan. `roadstead status` says why.'
    query: '''
      let plannedAt = toscalar(customMetrics
      | where name == "roadstead.plan.duration" and customDimensions.result == "planned"
      | summarize max(timestamp));
      customMetrics
      | where name == "roadstead.plan.duration" and customDimensions.result !in ("planned", "superseded")
      | where isnull(plannedAt) or timestamp > plannedAt
      | summarize failures = sum(valueCount)
      | where failures > 1'''
  }
  {
    name: 'queue-delay'
    severity: 3
    window: 'PT30M'
    description: 'Messages wait for minutes after they are due: too few instances, or an app that does not run.'
    query: '''
      customMetrics
      | where name == "roadstead.queue.delay"
      | summarize waited = sum(valueSum) / sum(valueCount) by tostring(customDimensions.queue)
      | where waited > 300'''
  }
  {
    name: 'time-to-ready'
    severity: 3
    window: 'PT6H'
    description: 'Changes take longer than an hour on average until their clusters are Ready.'
    query: '''
      customMetrics
      | where name == "roadstead.job.duration" and customDimensions.result == "Ready"
      | summarize seconds = sum(valueSum) / sum(valueCount)
      | where seconds > 3600'''
  }
  {
    name: 'dead-letters'
    severity: 2
    window: 'PT15M'
    description: 'A queue gave messages up. `roadstead dead-letters` shows those that need somebody.'
    query: '''
      customMetrics
      | where name == "roadstead.dead_letters"
      | summarize given_up = sum(valueSum) by tostring(customDimensions.queue)
      | where given_up > 0'''
  }
  {
    name: 'waiting-messages'
    severity: 2
    window: 'PT1H'
    description: 'Messages wait: an app has an older version than another one, or a record cannot be read. Its log says which.'
    query: '''
      customMetrics
      | where name == "roadstead.waiting_messages"
      | summarize deliveries = sum(valueSum) by tostring(customDimensions.queue)
      | where deliveries > 20'''
  }
  {
    name: 'webhooks-unsigned'
    severity: 2
    window: 'PT1H'
    description: 'Webhooks are refused: their signature is wrong or missing. Somebody forges them, or the secret differs from that in GitHub.'
    query: '''
      customMetrics
      | where name == "roadstead.webhooks" and customDimensions.result == "unsigned"
      | summarize unsigned = sum(valueSum)
      | where unsigned > 20'''
  }
  {
    name: 'azure-events-dropped'
    severity: 2
    window: 'PT1H'
    description: 'Events of Azure are dropped: sweeps find what they were about, hours later. The log says why.'
    query: '''
      customMetrics
      | where name == "roadstead.azure_events" and customDimensions.result in ("unreadable", "failed")
      | summarize dropped = sum(valueSum)
      | where dropped > 20'''
  }
]

resource component 'Microsoft.Insights/components@2020-02-02' existing = {
  name: componentName
}

resource alerts 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = [
  for rule in rules: {
    name: 'roadstead-${fleet}-${rule.name}'
    location: location
    tags: tags
    properties: {
      displayName: 'Roadstead ${fleet}: ${rule.name}'
      description: rule.description
      severity: rule.severity
      enabled: true
      evaluationFrequency: 'PT15M'
      windowSize: rule.window
      scopes: [component.id]
      autoMitigate: true
      criteria: {
        allOf: [
          {
            query: rule.query
            timeAggregation: 'Count'
            operator: 'GreaterThan'
            threshold: 0
          }
        ]
      }
      actions: { actionGroups: actionGroups }
    }
  }
]

// Narrower than the built-in Monitoring Reader, which reads everything.
resource ruleReader 'Microsoft.Authorization/roleDefinitions@2022-04-01' = {
  name: guid(resourceGroup().id, 'roadstead-alert-rules')
  properties: {
    roleName: 'Roadstead alert rules (${uniqueString(resourceGroup().id)})'
    description: 'Read the rules of alerts.'
    type: 'CustomRole'
    assignableScopes: [resourceGroup().id]
    permissions: [
      {
        actions: ['Microsoft.Insights/scheduledQueryRules/read']
      }
    ]
  }
}

resource ruleReaderAssignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(resourceGroup().id, principalId, ruleReader.id)
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: ruleReader.id
  }
}
