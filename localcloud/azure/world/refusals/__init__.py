"""What AKS refuses although the shape is right: tables of rules, each with its source.

Nothing here comes from production code: the sources are the models of Azure's library ("models", with the
name of the model; the REST reference has the same text), Azure's documentation ("docs", the page below
learn.microsoft.com/azure/aks) and public reports with the answer of the service (repository#number).
"""
