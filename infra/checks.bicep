// What a text of a parameter may be. A function sees its arguments alone: each is given its characters.
// Names: learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules.

@export()
var digits = '0123456789'

@export()
var small = 'abcdefghijklmnopqrstuvwxyz${digits}'

@export()
var letters = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'

@export()
var signs = '${letters}${digits}'

@export()
@description('Whether a text has no other characters than these.')
func has(text string, characters string) bool =>
  empty(filter(range(0, length(text)), at => !contains(characters, substring(text, at, 1))))

@export()
@description('Whether a text has none of these characters.')
func lacks(text string, characters string) bool =>
  empty(filter(range(0, length(text)), at => contains(characters, substring(text, at, 1))))

@export()
@description('Whether a text begins with one of some characters, ends with one of others, and has all of others between.')
func fits(text string, begin string, all string, end string) bool =>
  !empty(text) && contains(begin, take(text, 1)) && has(text, all) && contains(end, last(text))

@export()
@description('Whether a text is an id such as 00000000-0000-0000-0000-000000000001.')
func isId(text string) bool =>
  has(toLower(text), '0123456789abcdef-') && join(map(split(text, '-'), part => string(length(part))), '-') == '8-4-4-4-12'

@export()
@description('Whether a text is a range of addresses, such as 10.64.0.0/24, whose length is between two numbers.')
func isRange(text string, shortest int, longest int) bool =>
  length(split(text, '/')) == 2 && contains(
    map(range(shortest, longest - shortest + 1), number => string(number)),
    last(split(text, '/'))
  ) && length(split(first(split(text, '/')), '.')) == 4 && empty(filter(
    split(first(split(text, '/')), '.'),
    part => !contains(map(range(0, 256), number => string(number)), part)
  ))

@export()
@description('Whether a text is the id of a resource of a type, whose id has a number of parts.')
func isOfType(text string, type string, count int) bool =>
  startsWith(text, '/') && length(split(text, '/')) == count && contains(toLower(text), toLower('/providers/${type}/'))

func serverOf(url string) string => last(split(split(last(split(url, '://')), '/')[0], '@'))

@export()
@description('The server of an address of a repository. The same server serves HTTPS at another port than SSH.')
func gitServer(url string) string => startsWith(url, 'ssh://') ? split(serverOf(url), ':')[0] : serverOf(url)
