// Logs and traces: Application Insights on a Log Analytics workspace. Only identities may write to it.
import { texts } from 'types.bicep'

@description('The name of the Application Insights component.')
param componentName string

@description('The name of the workspace.')
param workspaceName string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags texts

@description('The identities of the apps.')
param principalIds string[]

@description('Days to keep logs.')
param retentionDays int = 30

@description('Gigabytes of logs a day, after which the rest of the day is not kept.')
param dailyGigabytes int

var monitoringMetricsPublisher = '3913510d-42f4-4e42-8a64-420c390055eb'

resource workspace 'Microsoft.OperationalInsights/workspaces@2026-03-01' = {
  name: workspaceName
  location: location
  tags: tags
  properties: {
    sku: { name: 'PerGB2018' }
    retentionInDays: retentionDays
    workspaceCapping: { dailyQuotaGb: dailyGigabytes }
  }
}

resource component 'Microsoft.Insights/components@2020-02-02' = {
  name: componentName
  location: location
  tags: tags
  kind: 'web'
  properties: {
    Application_Type: 'web'
    WorkspaceResourceId: workspace.id
    DisableLocalAuth: true
  }
}

resource publishers 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for principalId in principalIds: {
    scope: component
    name: guid(component.id, principalId, monitoringMetricsPublisher)
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', monitoringMetricsPublisher)
    }
  }
]

output workspaceId string = workspace.id
