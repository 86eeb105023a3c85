"""What operators ask and do, once for command line, clients, REST and dashboard; every verb gives a Reply."""
