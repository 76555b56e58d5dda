// The workbook on the metrics of docs/telemetry.md, in the portal below Application Insights.
import { texts } from 'types.bicep'

@description('The Application Insights component.')
param componentName string

@description('The fleet.')
param fleet string

@description('The region.')
param location string

@description('Tags for every resource.')
param tags texts

resource component 'Microsoft.Insights/components@2020-02-02' existing = {
  name: componentName
}

resource workbook 'Microsoft.Insights/workbooks@2023-06-01' = {
  name: guid(component.id, 'roadstead')
  location: location
  tags: tags
  kind: 'shared'
  properties: {
    displayName: 'Roadstead ${fleet}'
    category: 'workbook'
    sourceId: component.id
    serializedData: loadTextContent('workbook.json')
  }
}
