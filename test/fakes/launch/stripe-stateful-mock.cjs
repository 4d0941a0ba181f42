// Its own start listens on every interface; this one on loopback.
const path = require('node:path');
const [folder, port] = process.argv.slice(2);
const { createExpressApp } = require(path.join(folder, 'node_modules', 'stripe-stateful-mock'));
require(path.join(folder, 'node_modules', 'loglevel')).setLevel('silent');
createExpressApp().listen(Number(port), '127.0.0.1');
