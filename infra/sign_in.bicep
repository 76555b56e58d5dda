// Sign-in with Entra in front of the function app ("Easy Auth"). The app itself decides which role may do what.
@description('The name of the function app.')
param appName string

@description('The client id of the app registration of the API.')
param clientId string

@description('Let requests without a token through to the app, which then asks for a key, or for a signature of Flux or of a system that approves.')
param othersToo bool

resource app 'Microsoft.Web/sites@2025-03-01' existing = {
  name: appName
}

resource auth 'Microsoft.Web/sites/config@2025-03-01' = {
  parent: app
  name: 'authsettingsV2'
  properties: {
    platform: { enabled: true }
    globalValidation: {
      requireAuthentication: !othersToo
      unauthenticatedClientAction: othersToo ? 'AllowAnonymous' : 'RedirectToLoginPage'
      redirectToProvider: 'azureactivedirectory'
      // A git host has the secret of its webhook. A probe has no identity, and learns only whether the app is ready.
      excludedPaths: ['/api/github', '/api/webhook', '/api/ready']
    }
    identityProviders: {
      azureActiveDirectory: {
        enabled: true
        registration: {
          clientId: clientId
          openIdIssuer: '${environment().authentication.loginEndpoint}${tenant().tenantId}/v2.0'
        }
        validation: { allowedAudiences: [clientId, 'api://${clientId}'] }
      }
    }
    httpSettings: { requireHttps: true }
    // No token of a person is stored. A session cannot be revoked, so it is short: Easy Auth's own lasts eight hours.
    login: {
      tokenStore: { enabled: false }
      cookieExpiration: { convention: 'FixedTime', timeToExpiration: '01:00:00' }
    }
  }
}
