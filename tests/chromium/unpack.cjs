// Decompresses the browser and its libraries, which are in the package, into the folder of the first argument.
const fs = require('fs')
const path = require('path')
const zlib = require('zlib')

const [, , folder] = process.argv
const from = path.join(folder, 'node_modules', '@sparticuz', 'chromium', 'bin')
for (const name of ['chromium', 'al2023.tar', 'swiftshader.tar']) {
  fs.writeFileSync(path.join(folder, name), zlib.brotliDecompressSync(fs.readFileSync(path.join(from, `${name}.br`))))
}
