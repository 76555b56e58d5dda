// One function app on a Flex Consumption plan of its own. It reads storage, queues, secrets and telemetry with its
// identity: no setting holds a key. The runtime and its version are not app settings on this plan.
import { rule, texts } from 'types.bicep'

@description('What is kept warm: http, or function: and the name of a function.')
@sealed()
type group = {
  name: string
  instanceCount: int
}

@description('The name of the app.')
@maxLength(60)
param name string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags texts

@description('The user-assigned identity of the app.')
param identityName string

@description('The Application Insights component.')
param componentName string

@description('The storage account of the host.')
param storageName string

@description('The URL of the blob container with the deployed code.')
param deploymentContainer string

@description('Instances kept warm.')
param alwaysReady group[]

@description('Whether the instances are spread over the zones of the region.')
param zoneRedundant bool

@description('What an update does to running instances: RollingUpdate lets them end what they do, Recreate ends them.')
param updates 'RollingUpdate' | 'Recreate'

@description('The most instances that may run at one time.')
param maximumInstances int

@description('The subnet from which the app calls others; empty for none.')
param subnetId string

@description('Whether anybody but its private endpoint reaches the app.')
param publicEntrance bool

@description('Who reaches it then: rules of addresses, or of service tags. With none, anybody.')
param entranceRules rule[]

@description('Which functions of the package it runs: control, worker or deleter.')
@allowed(['control', 'worker', 'deleter'])
param app string

@description('The settings that Roadstead reads.')
param settings texts

@description('Settings beside these, by their names; the ones below win.')
param moreSettings texts

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' existing = {
  name: identityName
}

resource component 'Microsoft.Insights/components@2020-02-02' existing = {
  name: componentName
}

resource plan 'Microsoft.Web/serverfarms@2025-03-01' = {
  name: 'plan-${name}'
  location: location
  tags: tags
  kind: 'functionapp'
  sku: {
    name: 'FC1'
    tier: 'FlexConsumption'
  }
  properties: {
    reserved: true
    zoneRedundant: zoneRedundant
  }
}

resource site 'Microsoft.Web/sites@2025-03-01' = {
  name: name
  location: location
  // By this tag, azd finds the app of a service.
  tags: union(tags, { 'azd-service-name': app })
  kind: 'functionapp,linux'
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: { '${identity.id}': {} }
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    keyVaultReferenceIdentity: identity.id
    virtualNetworkSubnetId: empty(subnetId) ? null : subnetId
    publicNetworkAccess: publicEntrance ? 'Enabled' : 'Disabled'
    siteConfig: {
      minTlsVersion: '1.2'
      scmMinTlsVersion: '1.2'
      ftpsState: 'Disabled'
      ipSecurityRestrictions: entranceRules
      ipSecurityRestrictionsDefaultAction: empty(entranceRules) ? 'Allow' : 'Deny'
      scmIpSecurityRestrictionsUseMain: false
    }
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: deploymentContainer
          authentication: {
            type: 'UserAssignedIdentity'
            userAssignedIdentityResourceId: identity.id
          }
        }
      }
      scaleAndConcurrency: {
        alwaysReady: alwaysReady
        instanceMemoryMB: 2048
        maximumInstanceCount: maximumInstances
        // Without it, an instance of a Python app takes one request at a time.
        triggers: { http: { perInstanceConcurrency: 16 } }
      }
      runtime: {
        name: 'python'
        version: '3.13'
      }
      // The compiler's types lack it; learn.microsoft.com/azure/azure-functions/flex-consumption-site-updates has it.
      #disable-next-line BCP037
      siteUpdateStrategy: { type: updates }
    }
  }
}

resource appSettings 'Microsoft.Web/sites/config@2025-03-01' = {
  parent: site
  name: 'appsettings'
  properties: union(settings, moreSettings, {
    ROADSTEAD_APP: app
    // Each running invocation takes a thread of the worker. The worker's default is the number of cores plus
    // four: too few for the 16 sessions of host.json, or for 16 requests.
    PYTHON_THREADPOOL_THREAD_COUNT: '24'
    AZURE_CLIENT_ID: identity.properties.clientId
    AzureWebJobsStorage__accountName: storageName
    AzureWebJobsStorage__credential: 'managedidentity'
    AzureWebJobsStorage__clientId: identity.properties.clientId
    ServiceBus__credential: 'managedidentity'
    ServiceBus__clientId: identity.properties.clientId
    APPLICATIONINSIGHTS_CONNECTION_STRING: component.properties.ConnectionString
    APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${identity.properties.clientId};Authorization=AAD'
  })
}

output name string = site.name
output hostName string = site.properties.defaultHostName
