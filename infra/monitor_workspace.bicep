// The control app reads one workspace of Azure Monitor, for checks of gates.
@description('The name of the workspace, which exists.')
param name string

@description('Whether it is a Log Analytics workspace, and no managed Prometheus.')
param logs bool

@description('The identity of the control app.')
param principalId string

var monitoringDataReader = 'b0d8363b-8ddd-447d-831f-62ca05bff136'
var logAnalyticsReader = '73c42c96-874c-492b-b04d-ab87d138a893'

resource metrics 'Microsoft.Monitor/accounts@2023-04-03' existing = if (!logs) {
  name: name
}

resource workspace 'Microsoft.OperationalInsights/workspaces@2025-02-01' existing = if (logs) {
  name: name
}

resource metricsReader 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!logs) {
  scope: metrics
  name: guid(metrics.id, principalId, monitoringDataReader)
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', monitoringDataReader)
  }
}

resource logsReader 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (logs) {
  scope: workspace
  name: guid(workspace.id, principalId, logAnalyticsReader)
  properties: {
    principalId: principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', logAnalyticsReader)
  }
}
