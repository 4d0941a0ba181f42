# Its own start listens on every interface and keeps its state in one file for the whole machine; this
# one listens on loopback and keeps it in memory.
import sys

from aiohttp import web
from localstripe import resources, server

resources.Store.dump_to_disk = lambda self: None
web.run_app(server.app, host='127.0.0.1', port=int(sys.argv[2]), print=None, access_log=None)
