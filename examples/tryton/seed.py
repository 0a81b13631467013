# Creates a company, one product with one unit on a shelf, and the three shipments that want it: two sales,
# and a transfer from the shelf. Proteus, Tryton's client library, presses the buttons that people press.
import datetime
import os
from decimal import Decimal

from proteus import Model, Wizard, config
from trytond.pool import Pool
from trytond.transaction import Transaction

connection = config.set_trytond('postgresql:///shop', config_file=os.environ['TRYTOND_CONFIG'])
today = datetime.date.today()


def create(model, **values):
    record = Model.get(model)(**values)
    record.save()
    return record


def find(model, *domain):
    record, = Model.get(model).find(list(domain))
    return record


currency = create('currency.currency', name='Euro', code='EUR', symbol='EUR', rounding=Decimal('0.01'))
wizard = Wizard('company.company.config')
wizard.execute('company')
wizard.form.party, wizard.form.currency = create('party.party', name='Shop'), currency
wizard.execute('add')
connection._context = Model.get('res.user').get_preferences(True, {})
company = find('company.company')

warehouse = find('stock.location', ('code', '=', 'WH'))
shelf = create('stock.location', name='Shelf', type='storage', parent=find('stock.location', ('code', '=', 'STO')))
window = create('stock.location', name='Shop window', type='storage', parent=warehouse)
unit = find('product.uom', ('name', '=', 'Unit'))
template = create('product.template', name='Apple', type='goods', default_uom=unit, sale_uom=unit, salable=True,
    list_price=Decimal('1'))
product, = template.products

create('stock.move', product=product, uom=unit, quantity=1, from_location=find('stock.location', ('code', '=', 'SUP')),
    to_location=shelf, planned_date=today, effective_date=today, company=company, unit_price=Decimal('1'),
    currency=currency).click('do')

for name in ('Anna', 'Bert'):
    sale = Model.get('sale.sale')(party=create('party.party', name=name), invoice_method='shipment')
    line = sale.lines.new()
    line.product, line.quantity = product, 1
    sale.save()
    for button in ('quote', 'confirm', 'process'):
        sale.click(button)
    shipment, = sale.shipments
    print(name, sale.state, 'customer shipment', shipment.id, shipment.state)

transfer = Model.get('stock.shipment.internal')(planned_date=today, company=company, from_location=shelf, to_location=window)
transfer.moves.append(Model.get('stock.move')(product=product, uom=unit, quantity=1, from_location=shelf, to_location=window,
    company=company, currency=currency))
transfer.save()
transfer.click('wait')
print('internal shipment', transfer.id, transfer.state)

for login in ('clerk-1', 'clerk-2'):
    user = Model.get('res.user')(name=login, login=login)
    user.groups.append(find('res.group', ('name', '=', 'Stock')))
    user.companies.append(find('company.company'))
    user.company = find('company.company')
    user.save()
    with Transaction().start('shop', user.id):  # what a login writes, with a key that is known before
        Pool().get('ir.session').create([{'key': login}])
    print(login, user.id)
