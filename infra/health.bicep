// Asks the app every quarter of an hour from five places whether it is ready, and raises an alert when three of them
// hear that it is not, or nothing. The hosting plan itself has no health check.
import { texts } from 'types.bicep'

@description('What makes the names unique.')
param unique string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags texts

@description('The Application Insights component.')
param componentName string

@description('The host name of the app with the API.')
param hostName string

@description('The ids of the action groups that the alert notifies.')
param actionGroupIds string[]

var places = ['emea-nl-ams-azr', 'emea-gb-db3-azr', 'us-ca-sjc-azr', 'us-tx-sn1-azr', 'apac-sg-sin-azr']

resource component 'Microsoft.Insights/components@2020-02-02' existing = {
  name: componentName
}

resource test 'Microsoft.Insights/webtests@2022-06-15' = {
  name: 'ready-roadstead-${unique}'
  location: location
  // Without this tag, the test belongs to no component.
  tags: union(tags, { 'hidden-link:${component.id}': 'Resource' })
  kind: 'standard'
  properties: {
    Name: 'ready-roadstead-${unique}'
    SyntheticMonitorId: 'ready-roadstead-${unique}'
    Enabled: true
    Frequency: 900
    Timeout: 60
    Kind: 'standard'
    RetryEnabled: true
    Locations: [for place in places: { Id: place }]
    Request: {
      RequestUrl: 'https://${hostName}/api/ready'
      HttpVerb: 'GET'
      ParseDependentRequests: false
      FollowRedirects: false
    }
    ValidationRules: {
      ExpectedHttpStatusCode: 200
      SSLCheck: false
    }
  }
}

resource alert 'Microsoft.Insights/metricAlerts@2026-01-01' = {
  name: 'not-ready-roadstead-${unique}'
  location: 'global'
  tags: tags
  properties: {
    description: 'The app is not ready: a service that it needs does not answer, or a timer did not run. GET /api/health says which.'
    severity: 1
    enabled: true
    scopes: [test.id, component.id]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.WebtestLocationAvailabilityCriteria'
      webTestId: test.id
      componentId: component.id
      failedLocationCount: 3
    }
    actions: [for id in actionGroupIds: { actionGroupId: id }]
  }
}
